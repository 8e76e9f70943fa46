// error: wrong::layer_needs_samples_of_one_length, .*GroupNorm<2>.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// A norm over positions counts those that are padded.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, GroupNorm<2>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
