// error: wrong::transport_is_between_devices, .*HostKernels<.*BetweenDevices
// SPDX-License-Identifier: BSL-1.0
//
// The ranks of a host have no devices.
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
using Trainer = Pipeline<Net, Stages<2>, PortableHost>;
#else
using Trainer = Pipeline<Net, Stages<2>, PortableHost, BetweenDevices>;
#endif

#include "program.hpp"
