// error: wrong::schedule_does_not_train, .*ForwardOnly
// SPDX-License-Identifier: BSL-1.0
//
// Evaluation is a method of the trainer, not a schedule of it.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, GPipe>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, ForwardOnly>;
#endif

#include "program.hpp"
