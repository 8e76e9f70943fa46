// error: wrong::schedule_is_not_valid, .*Order<Wrong>.*Because<.*deadlock>.*OnRank<0>.*AtPosition<1>.*ForAction<.*backward, 0, 0>
// SPDX-License-Identifier: BSL-1.0
//
// The first rank waits for a gradient, the second for the first rank's next micro-batch.
#include "own_order.hpp"

struct Wrong {
  template <class Table>
  static constexpr void push(Table& table, int rank, pp::schedules::action const& a) {
    bool const second_forward = a.kind == pp::schedules::action_kind::forward && a.micro_batch == 1;
    bool const first_backward =
        a.kind == pp::schedules::action_kind::backward && a.micro_batch == 0;
    if (rank == 0 && second_forward)
      table.push(0, {pp::schedules::action_kind::backward, 0, 0});
    else if (rank == 0 && first_backward)
      table.push(0, {pp::schedules::action_kind::forward, 0, 1});
    else
      table.push(rank, a);
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = TwoRanks<Right>;
#else
using Trainer = TwoRanks<Wrong>;
#endif

#include "program.hpp"
