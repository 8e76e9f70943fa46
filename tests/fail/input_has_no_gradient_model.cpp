// error: wrong::input_has_no_gradient, .*Net>
// SPDX-License-Identifier: BSL-1.0
//
// A model of token ids alone.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Tokens<5, 3>, Embedding<4>, Linear<5>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost>;
#else
using Trainer = Pipeline<Net, PortableHost, InputGradients>;
#endif

#include "program.hpp"
