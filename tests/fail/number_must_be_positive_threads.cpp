// error: wrong::number_must_be_positive, pp::HostThreads<0> ?>
// SPDX-License-Identifier: BSL-1.0
//
// A rank has one thread at least.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, HostThreads<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, HostThreads<0>>;
#endif

#include "program.hpp"
