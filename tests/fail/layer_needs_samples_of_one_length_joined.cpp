// error: wrong::layer_needs_samples_of_one_length, .*ConcatOf.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// Rows of token ids are joined with rows of numbers, of which each sample has as many.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>,
                   ConcatOf<Identity, Seq<Named<"more", Input<8, 3>>, Linear<2>>>, Linear<7>,
                   CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, NoLengths>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
