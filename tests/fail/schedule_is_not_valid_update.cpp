// error: wrong::schedule_is_not_valid, .*Ends<true>.*Because<.*not_run>.*OnRank<0>.*AtPosition<4>.*ForAction<.*update, 0, 1>
// SPDX-License-Identifier: BSL-1.0
//
// A schedule with a flush that has the update in its table.
#include "own_order.hpp"

template <bool Updates>
struct Ends : Order<Right> {
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    Order<Right>::fill(problem, table);
    for (int rank = 0; rank < problem.ranks && Updates; ++rank)
      table.push(rank, {pp::schedules::action_kind::update, rank, problem.micro_batches - 1, 1});
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Ends<false>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Ends<true>>;
#endif

#include "program.hpp"
