// error: wrong::schedule_is_not_valid<.*Order<false>.*Because<.*too_many>.*OnRank<0>.*AtPosition<4>.*ForAction<.*recompute, 0, 1>
// SPDX-License-Identifier: BSL-1.0
//
// A rank's list is full when it has done everything.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool Right>
struct Order {
  static constexpr char const* name = "order";
  static constexpr placement where = placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false, trains = true;
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using enum action_kind;
    for (int rank = 0; rank < problem.ranks; ++rank)
      for (action_kind kind : {forward, backward})
        for (int mb = 0; mb < problem.micro_batches; ++mb) table.push(rank, {kind, rank, mb});
    if (!Right) table.push(0, {recompute, 0, 1});
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<false>>;
#endif

#include "program.hpp"
