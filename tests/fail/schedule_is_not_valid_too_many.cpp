// error: wrong::schedule_is_not_valid, .*Order<Wrong>.*Because<.*too_many>.*OnRank<0>.*AtPosition<4>.*ForAction<.*forward, 0, 1>
// SPDX-License-Identifier: BSL-1.0
//
// A rank's list is full when it has done everything.
#include "own_order.hpp"

struct Wrong {
  template <class Table>
  static constexpr void push(Table& table, int rank, pp::schedules::action const& a) {
    table.push(rank, a);
    if (rank == 0 && a.kind == pp::schedules::action_kind::backward && a.micro_batch == 1)
      table.push(0, {pp::schedules::action_kind::forward, 0, 1});
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = TwoRanks<Right>;
#else
using Trainer = TwoRanks<Wrong>;
#endif

#include "program.hpp"
