// error: wrong::labels_have_the_wrong_type, .*MSE.*ExpectedElement<double>.*FoundElement<int>
// SPDX-License-Identifier: BSL-1.0
//
// A target of a regression is a number, of the pipeline's precision.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost, FP64>;

#ifdef PIPE_EXPECT_OK
using numbers = std::span<double>;
#else
using numbers = std::span<int>;
#endif

double run(Trainer& trainer, std::vector<double> const& inputs, numbers labels) {
  return trainer.gradients({.inputs = inputs, .labels = labels}).loss;
}
