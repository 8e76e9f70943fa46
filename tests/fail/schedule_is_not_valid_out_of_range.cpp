// error: wrong::schedule_is_not_valid, .*Order<Wrong>.*Because<.*out_of_range>.*OnRank<0>.*AtPosition<0>.*ForAction<.*forward, 0, 2>
// SPDX-License-Identifier: BSL-1.0
//
// Micro-batches are counted from 0.
#include "own_order.hpp"

struct Wrong {
  template <class Table>
  static constexpr void push(Table& table, int rank, pp::schedules::action const& a) {
    table.push(rank, {a.kind, a.chunk, 2 - a.micro_batch});
  }
};

#ifdef PIPE_EXPECT_OK
using Trainer = TwoRanks<Right>;
#else
using Trainer = TwoRanks<Wrong>;
#endif

#include "program.hpp"
