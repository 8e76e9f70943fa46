// error: wrong::inputs_and_labels_are_one_argument_in_braces, .*Pipeline<Net
// SPDX-License-Identifier: BSL-1.0
//
// The same in another call.
#include <pipe/pipe.hpp>

#include <vector>

using namespace pp;

struct Net : Model<Tokens<9, 3>, Embedding<4>, Linear<9>, CrossEntropy> {};
using Trainer = Pipeline<Net, PortableHost>;

double loss(Trainer& trainer, std::vector<int> const& x, std::vector<int> const& y) {
#ifdef PIPE_EXPECT_OK
  return trainer.evaluate({x, y});
#else
  return trainer.evaluate(x, y);
#endif
}
