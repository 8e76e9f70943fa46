// error: wrong::gradients_are_divided_on_the_host, .*ZeRO<2>.*BetweenDevices
// SPDX-License-Identifier: BSL-1.0
//
// Replicas on GPUs have all gradients each.
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
using Trainer = Pipeline<Net, Stages<2>, PortableHost, MicroBatches<1>, ZeRO<2>>;
#else
using Trainer = Pipeline<Net, Stages<2>, PortableHost, MicroBatches<1>, ZeRO<2>, BetweenDevices>;
#endif

#include "program.hpp"
