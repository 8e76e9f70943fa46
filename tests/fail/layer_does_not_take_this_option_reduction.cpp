// error: wrong::Layer<1, .*wrong::layer_does_not_take_this_option\b.*With<.*MSE, .*Reduction<int>.*Reduction<int>
// SPDX-License-Identifier: BSL-1.0
//
// A reduction is Mean or Sum.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, With<MSE, Reduction<Sum>, Weights<"weight">>> {};
#else
struct Net : Model<Input<3>, Linear<4>, With<MSE, Reduction<int>, Weights<"weight">>> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
