// error: wrong::memory_limit_is_exceeded<.*OnRank<0>.*LimitBytes<1024L?>.*NeededBytes<\d{4,}L?>
// SPDX-License-Identifier: BSL-1.0
//
// The plan is measured against the limit.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, MemoryLimit<1_MiB>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, MemoryLimit<1_KiB>>;
#endif

#include "program.hpp"
