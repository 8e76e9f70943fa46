// error: wrong::process_has_one_device, .*Devices<2>.*BetweenDevices
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Several GPUs in each of several processes.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};
/// As Nccl, whose header needs another one.
struct BetweenDevices {
  struct transport {
    static constexpr bool copies = true, is_between_devices = true;
  };
};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, Stages<2>, Cuda, Devices<2>>;
#else
using Trainer = Pipeline<Net, Stages<2>, Cuda, Devices<2>, BetweenDevices>;
#endif

#include "program.hpp"
