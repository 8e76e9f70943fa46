// error: wrong::wgmma_products_need_sm_90a_alone, .*WgmmaProducts
// compilers: nvcc
// flags: -arch=compute_90
// SPDX-License-Identifier: BSL-1.0
//
// Products by wgmma need code for sm_90a; a program for other GPUs has the library's other kernels.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, Cuda>;
#else
using Trainer = Pipeline<Net, AdamW, Cuda, WgmmaProducts>;
#endif

#include "program.hpp"
