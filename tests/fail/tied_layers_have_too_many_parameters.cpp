// error: wrong::Layer<\d+, .*wrong::tied_layers_have_too_many_parameters\b.*Linear<3>.*Expected<512>
// SPDX-License-Identifier: BSL-1.0
//
// There is room for so many tensors in all layers that are shared.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Named<"block", Repeat<4, Linear<3>>>, Tied<"block">, MSE> {};
#else
struct Net : Model<Input<3>, Named<"block", Repeat<300, Linear<3>>>, Tied<"block">, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
