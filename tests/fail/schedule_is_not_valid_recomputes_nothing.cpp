// error: wrong::schedule_is_not_valid, .*RecomputeAhead<.*Because<.*not_run>.*OnRank<0>.*AtPosition<2>.*ForAction<.*recompute, 0, 0>
// SPDX-License-Identifier: BSL-1.0
//
// Recomputation ahead without an option that drops anything.
#include "own_order.hpp"

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>,
                         RecomputeAhead<OneFOneB>, RecomputeAll>;
#else
using Trainer =
    Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, RecomputeAhead<OneFOneB>>;
#endif

#include "program.hpp"
