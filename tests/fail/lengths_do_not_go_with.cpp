// error: wrong::lengths_do_not_go_with, .*Lengths<8, 8>.*BF16
// SPDX-License-Identifier: BSL-1.0
//
// Products of 16-bit numbers add rows in groups of 32, with which samples begin.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<>, FP64>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>, BF16>;
#endif

#include "program.hpp"
