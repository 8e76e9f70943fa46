// error: wrong::layer_needs_samples_of_one_length, .*FurtherLoss.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// A further loss that counts every position, padding too.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Stash<"words">, Linear<7>,
                   Losses<CrossEntropy, FurtherLoss<"marks", "words", Linear<2>, MSE>>> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, NoLengths>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
