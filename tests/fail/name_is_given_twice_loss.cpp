// error: wrong::Layer<1, .*wrong::name_is_given_twice\b.*Weights<.*Called<'a'>
// SPDX-License-Identifier: BSL-1.0
//
// What a loss reads is an input, whose name no other has.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Named<"a", Input<3>>, Linear<4>, With<MSE, Weights<"b">>> {};
#else
struct Net : Model<Named<"a", Input<3>>, Linear<4>, With<MSE, Weights<"a">>> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
