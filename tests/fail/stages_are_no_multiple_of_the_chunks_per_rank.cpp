// error: wrong::stages_are_no_multiple_of_the_chunks_per_rank, .*Stages<1>.*TwoChunks
// SPDX-License-Identifier: BSL-1.0
//
// With two chunks on each rank there is no odd number of stages.
#include <pipe/pipe.hpp>

using namespace pp;

struct TwoChunks {
  static constexpr char const* name = "two_chunks";
  static constexpr schedules::placement where = schedules::placement::loop;
  static constexpr int chunks_per_rank = 2;
  static constexpr bool splits_backward = false, trains = true;
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    for (int rank = 0; rank < problem.ranks; ++rank)
      for (auto kind : {schedules::action_kind::forward, schedules::action_kind::backward})
        for (int i = 0; i < 2; ++i)
          table.push(rank, {kind,
                            chunk_on(where, problem.ranks, rank,
                                     kind == schedules::action_kind::forward ? i : 1 - i),
                            0});
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, TwoChunks>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<1>, TwoChunks>;
#endif

#include "program.hpp"
