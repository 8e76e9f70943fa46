// error: wrong::schedule_is_not_valid<.*Order<false>.*Because<.*missing>.*OnRank<1>.*AtPosition<3>.*ForAction<.*backward, 1, 1>
// SPDX-License-Identifier: BSL-1.0
//
// The last gradient of the last rank is never made.
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
        for (int mb = 0; mb < problem.micro_batches; ++mb)
          if (Right || rank == 0 || kind == forward || mb == 0) table.push(rank, {kind, rank, mb});
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<false>>;
#endif

#include "program.hpp"
