// error: wrong::option_is_given_twice, .*GPipe.*OneFOneB
// SPDX-License-Identifier: BSL-1.0
//
// Two schedules are of one family, though their names do not say so.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, GPipe>;
#else
using Trainer = Pipeline<Net, PortableHost, GPipe, AdamW, OneFOneB>;
#endif

#include "program.hpp"
