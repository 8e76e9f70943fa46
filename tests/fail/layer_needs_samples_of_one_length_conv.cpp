// error: wrong::layer_needs_samples_of_one_length, .*Conv1d<4, 3.*Lengths<8, 8>
// SPDX-License-Identifier: BSL-1.0
//
// A window reads beyond the end of a sample.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Conv1d<4, 3, Padding<1>>, Linear<7>, CrossEntropy> {
};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>>;
#endif

#include "program.hpp"
