// error: wrong::layer_needs_samples_of_one_length, .*BatchNorm.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// Statistics of all rows count those that are padded.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, BatchNorm, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, MicroBatchSize<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, MicroBatchSize<2>, Lengths<>>;
#endif

#include "program.hpp"
