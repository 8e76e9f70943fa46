// error: wrong::Layer<2, .*wrong::value_must_be_stashed_before_another_replaces_it\b.*Recall<.*Found<5>
// SPDX-License-Identifier: BSL-1.0
//
// A recalled value takes the place of the current one.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Stash<"a">, Linear<5>, Stash<"b">, Recall<"a">, Linear<5>,
                   Pop<"b">, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Stash<"a">, Linear<5>, Recall<"a">, Linear<5>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
