// error: wrong::schedule_is_not_valid, .*Because<.*before_its_input>.*OnRank<0>.*AtPosition<0>.*ForAction<.*backward, 0, 0>
// SPDX-License-Identifier: BSL-1.0
//
// A schedule without a model whose backwards come before their forwards.
#include <pipe/schedule.hpp>

using namespace pp;

struct Order {
  static constexpr char const* name = "order";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false, trains = true;
#ifdef PIPE_EXPECT_OK
  static constexpr schedules::action_kind first = schedules::action_kind::forward,
                                          second = schedules::action_kind::backward;
#else
  static constexpr schedules::action_kind first = schedules::action_kind::backward,
                                          second = schedules::action_kind::forward;
#endif
  template <class Problem, class Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    for (int rank = 0; rank < problem.ranks; ++rank)
      for (schedules::action_kind const kind : {first, second})
        for (int mb = 0; mb < problem.micro_batches; ++mb)
          table.push(rank, schedules::action{kind, rank, mb});
  }
};

constexpr schedules::problem<> question{2, 2, 3, 0, schedules::same_cost{}};
constexpr auto table = schedules::make_table<Order, 2, 3>(question);
static_assert(schedules::proved<schedules::validate(question, table)>);
