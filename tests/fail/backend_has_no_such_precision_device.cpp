// error: wrong::backend_has_no_such_precision, .*Cuda.*SplitFP32
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// On a GPU fp32 products are made of three tf32 products, not of bfloat16.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, TF32, Cuda>;
#else
using Trainer = Pipeline<Net, AdamW, SplitFP32, Cuda>;
#endif

#include "program.hpp"
