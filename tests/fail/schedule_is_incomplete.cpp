// error: wrong::schedule_is_incomplete, .*OneByOne<false>.*Missing<.*trains>
// SPDX-License-Identifier: BSL-1.0
//
// A schedule says everything that its concept asks for.
#include <pipe/pipe.hpp>

using namespace pp;

struct facts {
  static constexpr bool trains = true;
};
struct no_facts {};

template <bool Complete>
struct OneByOne : std::conditional_t<Complete, facts, no_facts> {
  static constexpr char const* name = "one_by_one";
  static constexpr schedules::placement where = schedules::placement::straight;
  static constexpr int chunks_per_rank = 1;
  static constexpr bool splits_backward = false;
  template <class Problem, class Table>
  static constexpr void fill(Problem const&, Table& table) {
    table.push(0, {schedules::action_kind::forward, 0, 0});
    table.push(0, {schedules::action_kind::backward, 0, 0});
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, OneByOne<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, OneByOne<false>>;
#endif

#include "program.hpp"
