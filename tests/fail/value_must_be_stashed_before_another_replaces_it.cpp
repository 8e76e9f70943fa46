// error: wrong::Layer<1, .*wrong::value_must_be_stashed_before_another_replaces_it\b.*Named<.*Input<4>.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// A further input takes the place of the current value.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Stash<"left">, Named<"two", Input<4>>, Pop<"left">,
                   Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Named<"two", Input<4>>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
