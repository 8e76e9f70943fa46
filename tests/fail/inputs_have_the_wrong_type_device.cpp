// error: wrong::inputs_have_the_wrong_type, .*Input<3>.*ExpectedElement<float>.*FoundElement<double
// SPDX-License-Identifier: BSL-1.0
//
// Arrays in device memory have the types of those in the host's.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
using input = float;
#else
using input = double;
#endif

Trainer::device_batch first(device_span<input> inputs, device_span<float const> labels) {
  return {inputs, labels};
}
