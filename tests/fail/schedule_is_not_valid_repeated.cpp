// error: wrong::schedule_is_not_valid, .*Order<Wrong>.*Because<.*repeated>.*OnRank<0>.*AtPosition<1>.*ForAction<.*forward, 0, 0>
// SPDX-License-Identifier: BSL-1.0
//
// The first forward is done twice.
#include "own_order.hpp"

struct Wrong {
  template <class Table>
  static constexpr void push(Table& table, int rank, pp::schedules::action const& a) {
    table.push(rank, {a.kind, a.chunk, 0});
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = TwoRanks<Right>;
#else
using Trainer = TwoRanks<Wrong>;
#endif

#include "program.hpp"
