// error: wrong::steps_do_not_overlap_with, .*Steady<.*Cuda
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Versions of the weights are in the memory of a host.
#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, Stages<2>, MicroBatches<4>, Steady<>, GradientAccumulation<4>>;
#else
using Trainer = Pipeline<Net, AdamW, Stages<2>, MicroBatches<4>, Steady<>, Cuda>;
#endif

#include "program.hpp"
