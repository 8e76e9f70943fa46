// error: wrong::more_stages_than_layers, .*Stages<5>.*Layers<2>
// SPDX-License-Identifier: BSL-1.0
//
// A stage has at least one layer.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<5>>;
#endif

#include "program.hpp"
