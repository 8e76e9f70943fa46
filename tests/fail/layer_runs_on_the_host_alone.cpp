// error: wrong::layer_runs_on_the_host_alone, .*Attention<2.*Cuda
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Heads of 256 numbers, of which kernels for GPUs hold at most 128.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<4, 64>, Attention<2, HeadSize<256>>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatchSize<4>, AdamW>;
#else
using Trainer = Pipeline<Net, MicroBatchSize<4>, AdamW, Cuda>;
#endif

#include "program.hpp"
