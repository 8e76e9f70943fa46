// error: wrong::cuts_must_ascend_and_make_as_many_stages, .*Cut<2>.*Stages<2>.*Layers<2>
// SPDX-License-Identifier: BSL-1.0
//
// The second stage would have no layer.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, Cut<1>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, Cut<2>>;
#endif

#include "program.hpp"
