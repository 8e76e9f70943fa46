// error: wrong::input_gradients_are_of_one_process_on_the_host, .*InputGradients.*Cuda
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// A GPU.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, Cuda>;
#else
using Trainer = Pipeline<Net, Cuda, InputGradients>;
#endif

#include "program.hpp"
