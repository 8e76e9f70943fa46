// error: wrong::layer_runs_on_the_host_alone<.*Conv2d<\(?(int\))?4.*Cuda
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// A layer without a kernel for GPUs.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<8, 8, 3>, Conv2d<4, 3>, ReLU, Flatten, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW>;
#else
using Trainer = Pipeline<Net, AdamW, Cuda>;
#endif

#include "program.hpp"
