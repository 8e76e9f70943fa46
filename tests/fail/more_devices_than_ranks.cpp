// error: wrong::more_devices_than_ranks, .*Devices<3>.*Stages<2>
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// A device would have nothing to do.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, Stages<2>, AdamW, Cuda, Devices<2>>;
#else
using Trainer = Pipeline<Net, Stages<2>, AdamW, Cuda, Devices<3>>;
#endif

#include "program.hpp"
