// error: wrong::number_must_be_positive, pp::Graphs<0L?> ?>
// SPDX-License-Identifier: BSL-1.0
//
// A graph of a step has one kernel at least.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Graphs<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Graphs<0>>;
#endif

#include "program.hpp"
