// error: wrong::option_is_unknown, .*Linear<3>
// SPDX-License-Identifier: BSL-1.0
//
// A Pipeline takes options only.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, Linear<3>>;
#endif

#include "program.hpp"
