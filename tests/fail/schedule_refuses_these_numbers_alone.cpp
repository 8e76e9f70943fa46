// error: wrong::schedule_refuses_these_numbers, .*DualPipe, .*ForRanks<3>.*ForMicroBatches<8>
// SPDX-License-Identifier: BSL-1.0
//
// A table without a model, of a family that needs an even number of ranks.
#include <pipe/schedule.hpp>

#ifdef PIPE_EXPECT_OK
constexpr auto table = pp::schedules::make_table<pp::DualPipe, 4, 8>();
#else
constexpr auto table = pp::schedules::make_table<pp::DualPipe, 3, 8>();
#endif
