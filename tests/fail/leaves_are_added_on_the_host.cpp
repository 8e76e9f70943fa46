// error: wrong::leaves_are_added_on_the_host<.*Cuda.*SumIn<4>
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// A GPU adds no tree of leaves yet.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, Cuda>;
#else
using Trainer = Pipeline<Net, AdamW, Cuda, SumIn<4>>;
#endif

#include "program.hpp"
