// error: wrong::pipeline_has_no_input_gradients, .*NoInputGradients
// SPDX-License-Identifier: BSL-1.0
//
// Gradients of inputs take work in every step: programs that want them say so.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, InputGradients>;
#else
using Trainer = Pipeline<Net, PortableHost>;
#endif

float first(Trainer& trainer, Trainer::batch const& batch) {
  return trainer.input_gradients(batch)[0];
}
