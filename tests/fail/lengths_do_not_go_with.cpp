// error: wrong::lengths_do_not_go_with, .*Lengths<8, 8>.*GradientAccumulationBySpeed<2
// SPDX-License-Identifier: BSL-1.0
//
// Accumulations go from one process to another.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<>, GradientAccumulation<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>, GradientAccumulationBySpeed<2>>;
#endif

#include "program.hpp"
