// error: wrong::predict_needs_a_trainer, int, .*UseInstead<.*a_trainer_before_the_inputs>
// SPDX-License-Identifier: BSL-1.0
//
// Something else in place of the trainer.
#include <pipe/pipe.hpp>

#include <vector>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

/// A function of the program of the same name is taken, with conversions too.
double predict(double x, double y) { return x + y; }
double const three = predict(1, 2);

std::vector<float> outputs([[maybe_unused]] Trainer& trainer, std::vector<float> const& x) {
#ifdef PIPE_EXPECT_OK
  return predict(trainer, x);
#else
  return predict(42, x);
#endif
}
