// error: wrong::layer_runs_on_the_host_alone<.*SyncOver<2.*Cuda
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Groups of samples in a micro-batch, which GPUs norm as a whole.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, BatchNormWith<SyncOver<2>>, ReLU, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatchSize<4>, AdamW>;
#else
using Trainer = Pipeline<Net, MicroBatchSize<4>, AdamW, Cuda>;
#endif

#include "program.hpp"
