// error: wrong::memory_limit_is_exceeded, .*OnRank<0>.*OverBytes<\d+L?>.*LimitBytes<1024L?>.*NeededBytes<\d{4,}L?>.*Takes<.*scratch, \d+L?>.*Takes<.*optimizer_state, \d+L?>.*Takes<.*gradients, \d+L?>.*Takes<.*saved_activations, \d+L?>
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
