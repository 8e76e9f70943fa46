// error: wrong::block_must_divide_the_context, .*Tokens<7, 20>.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// A sample of the longest length is whole blocks.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 20>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<4>>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
