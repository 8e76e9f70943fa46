// error: wrong::number_must_be_positive, .*Order<false>.*Found<0>
// SPDX-License-Identifier: BSL-1.0
//
// A rank has a chunk.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool Right>
struct Order {
  static constexpr char const* name = "order";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = Right ? 1 : 0;
  static constexpr bool splits_backward = false, trains = true;
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using enum schedules::action_kind;
    for (schedules::action_kind const kind : {forward, backward})
      for (int mb = 0; mb < problem.micro_batches; ++mb)
        for (int rank = 0; rank < problem.ranks; ++rank) table.push(rank, {kind, rank, mb});
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, MicroBatches<2>, Order<false>>;
#endif

#include "program.hpp"
