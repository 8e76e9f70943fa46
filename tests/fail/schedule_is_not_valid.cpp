// error: wrong::schedule_is_not_valid, .*Order<Wrong>.*Because<.*before_its_input>.*OnRank<1>.*AtPosition<0>.*ForAction<.*backward, 1, 0>
// SPDX-License-Identifier: BSL-1.0
//
// The second rank begins with a backward of what it has not seen.
#include "own_order.hpp"

struct Wrong {
  template <class Table>
  static constexpr void push(Table& table, int rank, pp::schedules::action const& a) {
    pp::schedules::action_kind const other = a.kind == pp::schedules::action_kind::forward
                                                 ? pp::schedules::action_kind::backward
                                                 : pp::schedules::action_kind::forward;
    table.push(rank, {rank == 1 ? other : a.kind, a.chunk, a.micro_batch});
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = TwoRanks<Right>;
#else
using Trainer = TwoRanks<Wrong>;
#endif

#include "program.hpp"
