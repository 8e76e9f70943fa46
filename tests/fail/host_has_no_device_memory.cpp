// error: wrong::host_has_no_device_memory, .*HostKernels<
// SPDX-License-Identifier: BSL-1.0
//
// A trainer on the host is given arrays in the memory of a GPU.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
using numbers = std::span<float const>;
#else
using numbers = device_span<float const>;
#endif

double first(Trainer& trainer, numbers inputs, numbers labels) {
  return trainer.step({inputs, labels}).loss;
}
