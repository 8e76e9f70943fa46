// error: wrong::schedule_is_not_valid, .*Order<Wrong>.*Because<.*missing>.*OnRank<1>.*AtPosition<3>.*ForAction<.*backward, 1, 1>
// SPDX-License-Identifier: BSL-1.0
//
// The last gradient of the last rank is never made.
#include "own_order.hpp"

struct Wrong {
  template <class Table>
  static constexpr void push(Table& table, int rank, pp::schedules::action const& a) {
    if (rank == 0 || a.kind == pp::schedules::action_kind::forward || a.micro_batch == 0)
      table.push(rank, a);
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = TwoRanks<Right>;
#else
using Trainer = TwoRanks<Wrong>;
#endif

#include "program.hpp"
