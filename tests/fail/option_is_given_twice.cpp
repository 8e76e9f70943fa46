// error: wrong::option_is_given_twice, .*Stages<2>.*Stages<1>
// SPDX-License-Identifier: BSL-1.0
//
// One option of each family.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>>;
#else
using Trainer = Pipeline<Net, Stages<2>, PortableHost, AdamW, Stages<1>>;
#endif

#include "program.hpp"
