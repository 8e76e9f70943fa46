// error: wrong::number_is_too_large, .*HostThreads<1000>.*AtMost<256L?>
// SPDX-License-Identifier: BSL-1.0
//
// A rank has at most 256 threads.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, HostThreads<256>, PortableHost>;
#else
using Trainer = Pipeline<Net, HostThreads<1000>, PortableHost>;
#endif

static_assert(Trainer::plan.bubble < 1);
