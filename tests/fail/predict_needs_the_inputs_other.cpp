// error: wrong::predict_needs_the_inputs, .*Pipeline<Net, .*, double>
// SPDX-License-Identifier: BSL-1.0
//
// A number in place of the inputs.
#include <pipe/pipe.hpp>

#include <vector>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

double first(Trainer& trainer, [[maybe_unused]] std::vector<float> const& x) {
#ifdef PIPE_EXPECT_OK
  return predict<"labels">(trainer, x)[0];
#else
  return predict<"labels">(trainer, 0.5)[0];
#endif
}
