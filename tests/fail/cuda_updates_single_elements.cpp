// error: wrong::cuda_updates_single_elements<.*Cuda.*Muon
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// An optimizer that needs whole tensors has no kernels for a GPU.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, Cuda>;
#else
using Trainer = Pipeline<Net, Muon, Cuda>;
#endif

#include "program.hpp"
