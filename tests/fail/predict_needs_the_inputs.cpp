// error: wrong::predict_needs_the_inputs, .*Pipeline<Net, [^,]*> ?>\W
// SPDX-License-Identifier: BSL-1.0
//
// No inputs.
#include <pipe/pipe.hpp>

#include <vector>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

std::vector<float> outputs(Trainer& trainer, [[maybe_unused]] std::vector<float> const& x) {
#ifdef PIPE_EXPECT_OK
  return predict(trainer, {x, {}});
#else
  return predict(trainer);
#endif
}
