// error: wrong::lengths_are_of_token_ids_alone, .*Net.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// A bag reads as many ids for each sample: no row is one position of them.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, EmbeddingBag<4>, Linear<3>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
