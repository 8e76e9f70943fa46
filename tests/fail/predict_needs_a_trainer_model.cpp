// error: wrong::predict_needs_a_trainer, Net, .*UseInstead<.*Pipeline_of_the_model_as_an_object>
// SPDX-License-Identifier: BSL-1.0
//
// A model is a type, and has no weights.
#include <pipe/pipe.hpp>

#include <vector>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

void outputs([[maybe_unused]] Trainer& trainer, std::vector<float> const& x,
             std::vector<float>& y) {
#ifdef PIPE_EXPECT_OK
  predict(trainer, x, y);
#else
  predict(Net(), x, y);
#endif
}
