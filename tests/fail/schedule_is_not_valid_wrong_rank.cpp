// error: wrong::schedule_is_not_valid, .*Order<Wrong>.*Because<.*wrong_rank>.*OnRank<0>.*AtPosition<0>.*ForAction<.*forward, 1, 0>
// SPDX-License-Identifier: BSL-1.0
//
// The first rank holds the first chunk.
#include "own_order.hpp"

struct Wrong {
  template <class Table>
  static constexpr void push(Table& table, int rank, pp::schedules::action const& a) {
    table.push(rank, {a.kind, 1 - a.chunk, a.micro_batch});
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = TwoRanks<Right>;
#else
using Trainer = TwoRanks<Wrong>;
#endif

#include "program.hpp"
