// error: wrong::Layer<1, .*wrong::tied_layer_needs_parameters_of_the_same_shape\b.*Linear<4>.*Expected<3, 4>.*Found<4, 4>
// SPDX-License-Identifier: BSL-1.0
//
// The same weights read the same width.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, Named<"block", Linear<4>>, Tied<"block">, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Named<"block", Linear<4>>, Tied<"block">, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
