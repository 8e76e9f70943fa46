// error: wrong::Layer<1, .*wrong::value_must_be_stashed_before_another_replaces_it\b.*Found<8>
// SPDX-License-Identifier: BSL-1.0
//
// A branch may begin with a further input; behind a layer of the branch, the input would replace
// that layer's result.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<8>, ConcatOf<Identity, Seq<Named<"b", Input<4>>, Linear<8>>>,
                   Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<8>, ConcatOf<Identity, Seq<Linear<8>, Named<"b", Input<4>>>>,
                   Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
