// error: wrong::cuda_is_compiled_by_nvcc, .*Cuda
// compilers: g++ clang++
// SPDX-License-Identifier: BSL-1.0
//
// A compiler for the host alone has no kernels for a GPU.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, PortableHost>;
#else
using Trainer = Pipeline<Net, AdamW, Cuda>;
#endif

#include "program.hpp"
