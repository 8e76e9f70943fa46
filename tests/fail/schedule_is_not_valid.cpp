// error: wrong::schedule_is_not_valid<.*Order<false>.*Because<.*before_its_input>.*OnRank<1>.*AtPosition<0>.*ForAction<.*backward, 1, 0>
// SPDX-License-Identifier: BSL-1.0
//
// The second rank begins with a backward of what it has not seen.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool ForwardFirst>
struct Order {
  static constexpr char const* name = "order";
  static constexpr placement where = placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false, trains = true;
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    using enum action_kind;
    for (int rank = 0; rank < problem.ranks; ++rank) {
      bool const first = ForwardFirst || rank == 0;
      table.push(rank, {first ? forward : backward, rank, 0});
      table.push(rank, {first ? backward : forward, rank, 0});
    }
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, Order<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<2>, Order<false>>;
#endif

#include "program.hpp"
