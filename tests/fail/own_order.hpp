// SPDX-License-Identifier: BSL-1.0
//
// GPipe's order as a user would write it, on two ranks with two micro-batches; a test says by its `push` what goes
// wrong on the way into the table.
#pragma once

#include <pipe/pipe.hpp>

using namespace pp;

struct Right {
  template <class Table>
  static constexpr void push(Table& table, int rank, schedules::action const& a) {
    table.push(rank, a);
  }
};

template <class Change>
struct Order {
  static constexpr char const* name = "order";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false, trains = true;
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    for (int rank = 0; rank < problem.ranks; ++rank)
      for (schedules::action_kind const kind :
           {schedules::action_kind::forward, schedules::action_kind::backward})
        for (int mb = 0; mb < problem.micro_batches; ++mb)
          Change::push(table, rank, schedules::action{kind, rank, mb});
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

template <class Change>
using TwoRanks = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<Change>>;
