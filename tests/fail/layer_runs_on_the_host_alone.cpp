// error: wrong::layer_runs_on_the_host_alone<.*FurtherLoss<.*Cuda
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Several losses, of which GPUs have one.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<4>, Linear<6>, Stash<"a">, Linear<2>,
                   Losses<MSE, FurtherLoss<"b", "a", Linear<3>, CrossEntropy>>> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW>;
#else
using Trainer = Pipeline<Net, AdamW, Cuda>;
#endif

#include "program.hpp"
