// error: wrong::schedule_is_not_valid, .*Again<true>.*Because<.*not_run>.*OnRank<0>.*AtPosition<2>.*ForAction<.*recompute, 0, 0>
// SPDX-License-Identifier: BSL-1.0
//
// A recomputation as an action of its own, in a schedule that does not say so.
#include "own_order.hpp"

template <bool Recomputes>
struct Again : Order<Right> {
  static constexpr bool splits_backward = true;  // which leaves room for it
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using enum pp::schedules::action_kind;
    for (int rank = 0; rank < problem.ranks; ++rank) {
      for (int mb = 0; mb < problem.micro_batches; ++mb) table.push(rank, {forward, rank, mb});
      for (int mb = 0; mb < problem.micro_batches; ++mb) {
        if (Recomputes) table.push(rank, {recompute, rank, mb});
        table.push(rank, {backward, rank, mb});
      }
    }
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Again<false>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Again<true>>;
#endif

#include "program.hpp"
