// error: wrong::schedule_is_not_valid<.*Order<false>.*Because<.*deadlock>.*OnRank<0>.*AtPosition<1>.*ForAction<.*backward, 0, 0>
// SPDX-License-Identifier: BSL-1.0
//
// The first rank waits for a gradient, the second for the first rank's next micro-batch.
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
    for (action const& a : {action{forward, 0, 0},
                            {Right ? forward : backward, 0, int(Right)},
                            {Right ? backward : forward, 0, int(!Right)},
                            {backward, 0, 1}})
      table.push(0, a);
    for (int mb = 0; mb < problem.micro_batches; ++mb) table.push(1, {forward, 1, mb});
    for (int mb = 0; mb < problem.micro_batches; ++mb) table.push(1, {backward, 1, mb});
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<false>>;
#endif

#include "program.hpp"
