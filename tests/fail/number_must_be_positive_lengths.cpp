// error: wrong::number_must_be_positive, .*Lengths<0, 8>
// SPDX-License-Identifier: BSL-1.0
//
// A block has rows.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<1>>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<0>>;
#endif

#include "program.hpp"
