// error: wrong::schedule_is_not_valid, .*Order<Wrong>.*Because<.*no_such_rank>.*OnRank<2>.*ForAction<.*forward, 1, 0>
// SPDX-License-Identifier: BSL-1.0
//
// Ranks are counted from 0.
#include "own_order.hpp"

struct Wrong {
  template <class Table>
  static constexpr void push(Table& table, int rank, pp::schedules::action const& a) {
    table.push(rank == 0 ? 0 : 2, a);
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = TwoRanks<Right>;
#else
using Trainer = TwoRanks<Wrong>;
#endif

#include "program.hpp"
