// error: wrong::memory_limit_is_exceeded, .*OnRank<0>.*LimitBytes<16777216L?>.*Takes<.*input_staging, 26\d{7}L?>
// SPDX-License-Identifier: BSL-1.0
//
// A mini-batch of fewer samples is filled up in memory of the rank that reads it: under the limit, as all of its memory is.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<4096>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, SGD, MicroBatchSize<512>, MemoryLimit<16_MiB>>;
#else
using Trainer = Pipeline<Net, PortableHost, SGD, MicroBatchSize<16384>, MemoryLimit<16_MiB>>;
#endif

#include "program.hpp"
