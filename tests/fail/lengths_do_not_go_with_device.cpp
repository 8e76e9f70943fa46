// error: wrong::lengths_do_not_go_with, .*Lengths<8, 8>.*Cuda
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// Kernels of a GPU compute all rows that are planned.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#else
using Trainer = Pipeline<Net, Cuda, Lengths<>>;
#endif

#include "program.hpp"
