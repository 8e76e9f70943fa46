// error: wrong::cuda_computes_in_fp32<.*Cuda.*FP64
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// The kernels for a GPU are not made for doubles.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, Cuda>;
#else
using Trainer = Pipeline<Net, AdamW, Cuda, FP64>;
#endif

#include "program.hpp"
