// error: wrong::Layer<1, .*wrong::gate_needs_an_even_width\b.*SwiGLU.*Found<13>
// SPDX-License-Identifier: BSL-1.0
//
// Half of the channels are the gate of the other half.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<12>, SwiGLU, Linear<4>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<13>, SwiGLU, Linear<4>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
