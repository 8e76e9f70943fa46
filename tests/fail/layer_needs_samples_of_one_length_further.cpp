// error: wrong::layer_needs_samples_of_one_length, .*FurtherLoss.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// The labels of a further loss are an input of the model, of one length.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Stash<"words">, Linear<7>,
                   Losses<CrossEntropy, FurtherLoss<"tags", "words", CrossEntropy>>> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, NoLengths>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
