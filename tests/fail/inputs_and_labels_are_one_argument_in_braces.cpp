// error: wrong::inputs_and_labels_are_one_argument_in_braces, .*Pipeline<Net
// SPDX-License-Identifier: BSL-1.0
//
// Inputs and labels as two arguments, as other frameworks have them.
#include <pipe/pipe.hpp>

#include <vector>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

double train(Trainer& trainer, std::vector<float> const& x, std::vector<float> const& y) {
#ifdef PIPE_EXPECT_OK
  return trainer.step({x, y}).loss + trainer.step({x, y}, 0.1f).loss + trainer.step({x, y}, 1).loss;
#else
  return trainer.step(x, y).loss;
#endif
}
