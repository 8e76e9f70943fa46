// error: wrong::cuda_needs_a_target_from_sm_80, .*Cuda
// compilers: nvcc
// flags: -arch=compute_75
// SPDX-License-Identifier: BSL-1.0
//
// Kernels need what GPUs have from sm_80 on; a program of the host does not.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, PortableHost>;
#else
using Trainer = Pipeline<Net, AdamW, Cuda>;
#endif

#include "program.hpp"
