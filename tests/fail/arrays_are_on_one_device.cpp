// error: wrong::arrays_are_on_one_device, .*Devices<2>
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// A trainer on two GPUs is given arrays in the memory of one.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, Stages<2>, Cuda>;
#else
using Trainer = Pipeline<Net, Stages<2>, Cuda, Devices<2>>;
#endif

double first(Trainer& trainer, device_span<float const> inputs, device_span<float const> labels) {
  return trainer.step({inputs, labels}).loss;
}
