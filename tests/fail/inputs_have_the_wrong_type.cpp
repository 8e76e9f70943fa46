// error: wrong::inputs_have_the_wrong_type, .*Input<3>.*ExpectedElement<float>.*FoundElement<int>
// SPDX-License-Identifier: BSL-1.0
//
// Numbers are of the pipeline's precision; tokens are int.
#include <vector>

#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
using numbers = std::vector<float>;
#else
using numbers = std::vector<int>;
#endif

double run(Trainer& trainer, numbers& inputs, std::vector<float>& labels) {
  trainer.forward(inputs, labels);
  return trainer.step({inputs, labels}).loss;
}
