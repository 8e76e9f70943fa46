// error: wrong::model_has_no_input_with_that_name, .*Net.*Called<'b'>
// SPDX-License-Identifier: BSL-1.0
//
// The same where a gradient is asked for.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Named<"a", Input<3>>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost, InputGradients>;

float first(Trainer& trainer, Trainer::batch const& batch) {
#ifdef PIPE_EXPECT_OK
  return trainer.input_gradients<"a">(batch)[0];
#else
  return trainer.input_gradients<"b">(batch)[0];
#endif
}
