// error: wrong::Layer<1, .*wrong::value_is_stashed_but_never_popped\b.*Stash<.*Called<'s', 'k', 'i', 'p'>.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// What is kept has a reader; the place is where it was stashed.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Stash<"skip">, Tanh, Pop<"skip">, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Stash<"skip">, Tanh, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
