// error: wrong::layer_needs_samples_of_one_length, .*MSE.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// A loss of numbers counts every position.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
