// error: wrong::replicas_of_a_stage_are_on_the_host, .*StageReplicas<2, 1>.*Cuda
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// The ranks of a stage add to its gradient kernel by kernel, and those of a GPU wait for each other
// between actions.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, Stages<2>, Cuda>;
#else
using Trainer = Pipeline<Net, AdamW, StageReplicas<2, 1>, Cuda>;
#endif

#include "program.hpp"
