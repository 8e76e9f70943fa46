// SPDX-License-Identifier: BSL-1.0
//
// All gradients of a norm as one kernel against the kernels of its two launches: the same bits.
#include <cstring>
#include <memory>
#include <vector>

#include "cuda/one_group.hpp"

using namespace pp;
using cuda::thread_order;
using on_host::buffer;

namespace {

/// Groups 0 and 1: the sums over rows, and the gradient of the input with a residual's after it.
template <class T, int Rows, int Columns, int Samples, bool Shifts, bool Adds>
struct norm_of {
  using element = T;
  using leaves = detail::layers<>;
  static constexpr int samples = Samples, columns = Columns;
  static constexpr std::size_t rows = std::size_t(Rows) * Samples,
                               size = rows * std::size_t(Columns);
  static constexpr bool shifts = Shifts, adds = Adds;

  static constexpr detail::group group_at(int which) {
    detail::group g;
    g.rows = Rows, g.columns = Columns;
    if (which == 0) {
      g.anchor = op_kind::norm_parameter_gradient;
      for (signed char i = 0; i < 3; ++i) g.in[i] = i;
      g.out[0] = 3;
      g.out[1] = Shifts ? 4 : -1;
      g.operands = Shifts ? 5 : 4;
      return g;
    }
    g.anchor = op_kind::norm_gradient;
    g.attributes = detail::norm_attributes{Shifts, 1e-5f};
    for (signed char i = 0; i < 4; ++i) g.in[i] = i;
    g.out[0] = 4;
    g.operands = 5;
    if (Adds) {
      g.epilogue.push_back(detail::pointwise_op{op_kind::add, 0, 5, 6, false});
      g.operands = 7;
    }
    return g;
  }
};

/// The operands of both launches.
template <class P>
struct operands {
  using T = typename P::element;
  buffer<T> dy = buffer<T>::random(P::size, 1), x = buffer<T>::random(P::size, 2),
            gamma = buffer<T>::random(P::columns, 3), residual = buffer<T>::random(P::size, 4);
  buffer<float> statistics = buffer<float>::random(2 * P::rows, 5),
                dgamma = buffer<float>::random(P::columns, 6),
                dbeta = buffer<float>::random(P::columns, 7);
  buffer<T> dx{P::size}, sum{P::size};

  std::vector<void*> of_sums() {
    std::vector<void*> list{dy.data(), x.data(), statistics.data(), dgamma.data()};
    if (P::shifts) list.push_back(dbeta.data());
    return list;
  }
  std::vector<void*> of_input() {
    std::vector<void*> list{dy.data(), x.data(), gamma.data(), statistics.data(), dx.data()};
    if (P::adds) list.insert(list.end(), {residual.data(), sum.data()});
    return list;
  }
};

template <class T>
bool equal(buffer<T> const& a, buffer<T> const& b) {
  return std::memcmp(&a[0], &b[0], a.size() * sizeof(T)) == 0;
}

/// The sums of dy over rows, in the order of norm_rows: blocks take rows in turn, one for each
/// team.
template <class P>
std::vector<float> sums_in_turn(buffer<typename P::element> const& dy) {
  using kernel = cuda::norm_sums_kernel<P, 0>;
  constexpr std::size_t n = P::columns, teams = kernel::team::teams, blocks = kernel::chunks;
  auto const add = [&](std::vector<float> const& from, std::vector<float>& to) {
    for (std::size_t c = 0; c < n; ++c) to[c] += from[c];
  };
  std::vector<float> all(n);
  for (std::size_t first = 0; first < blocks; first += std::size_t(kernel::tree.per_group)) {
    std::vector<float> group(n);
    for (std::size_t b = first; b < first + std::size_t(kernel::tree.per_group) && b < blocks;
         ++b) {
      std::vector<float> block(n);
      for (std::size_t t = 0; t < teams; ++t) {
        std::vector<float> team(n);
        for (std::size_t row = b * teams + t; row < P::rows; row += blocks * teams)
          for (std::size_t c = 0; c < n; ++c) team[c] += float(dy[row * n + c]);
        add(team, block);
      }
      add(block, group);
    }
    add(group, all);
  }
  return all;
}

/// P in a pipeline with Lengths.
template <class P>
struct of_lengths : P {
  static constexpr int length_block = 8;
};

template <class P>
void is_its_launches(bool accumulate, detail::segment_list const* segments = nullptr) {
  INFO(P::rows << " x " << P::columns);
  cuda::arguments shared;
  shared.accumulate = accumulate;
  shared.segments = segments;
  operands<P> apart;
  auto const launch = [&]<int G>(std::integral_constant<int, G>, std::vector<void*> const& list) {
    using kernels = cuda::lowered<P, G>;
    buffer<unsigned char> workspace(std::size_t(cuda::workspace_of(kernels{})) + 1);
    cuda::arguments a = shared;
    a.workspace = workspace.data();
    for (std::size_t i = 0; i < list.size(); ++i) a.operand[i] = list[i];
    on_host::run_bodies(kernels{}, a);
  };
  launch(std::integral_constant<int, 0>{}, apart.of_sums());
  launch(std::integral_constant<int, 1>{}, apart.of_input());
  if constexpr (P::shifts && P::columns <= 4096 &&
                !detail::has_segments<P>) {  // wider rows: column_sums_kernel
    std::vector<float> const sums = sums_in_turn<P>(apart.dy);
    operands<P> const before;
    for (std::size_t c = 0; c < std::size_t(P::columns); ++c)
      CHECK(apart.dbeta[c] == (accumulate ? before.dbeta[c] + sums[c] : sums[c]));
  }
  for (auto const order :
       {thread_order::ascending, thread_order::descending, thread_order::interleaved}) {
    using pair = cuda::norm_gradients<P, 0, 1>;
    operands<P> together;
    CHECK_FALSE(equal(together.dx, apart.dx));
    CHECK_FALSE(equal(together.dgamma, apart.dgamma));
    std::vector<void*> operands = together.of_sums();
    for (void* const operand : together.of_input()) operands.push_back(operand);
    buffer<unsigned char> workspace(std::size_t(pair::workspace_bytes) + 1);
    std::vector<unsigned> tickets(std::size_t(cuda::most_tickets), 0);
    shared.workspace = workspace.data();
    shared.tickets = tickets.data();
    on_host::run_kernel<typename pair::kernel>(pair::pack(shared, operands.data()), order);
    for (unsigned const taken : tickets) REQUIRE(taken == 0);
    CHECK(equal(together.dx, apart.dx));
    CHECK(equal(together.dgamma, apart.dgamma));
    CHECK(equal(together.dbeta, apart.dbeta));
    if (P::adds) CHECK(equal(together.sum, apart.sum));
  }
}
template <class T>
void all() {
  is_its_launches<norm_of<T, 1, 5, 1, true, false>>(false);
  is_its_launches<norm_of<T, 43, 768, 2, true, true>>(true);
  is_its_launches<norm_of<T, 7, 77, 3, false, true>>(false);
  is_its_launches<norm_of<T, 9, 8192, 2, true, false>>(true);
  // More rows than 264 blocks have in four turns.
  is_its_launches<norm_of<T, 1777, 16, 100, true, true>>(false);
}

}  // namespace

TEST_CASE("gradients of a norm as one kernel have the bits of their launches", "[cuda][long]") {
  all<float>();
  all<bf16>();
}

TEST_CASE("gradients of a norm as one kernel, of rows of several lengths", "[cuda]") {
  int const first[] = {0, 8, 48, 64};
  detail::segment_list list;
  list.rows = 64, list.count = 3, list.planned_rows = 80, list.first = first;
  is_its_launches<of_lengths<norm_of<float, 40, 768, 2, true, true>>>(true, &list);
  is_its_launches<of_lengths<norm_of<bf16, 40, 77, 2, true, false>>>(false, &list);
}

TEST_CASE("a tree of parts has about as many groups as parts in a group", "[cuda]") {
  for (long const parts : {1, 2, 24, 25, 26, 264}) {
    cuda::sum_tree const t = cuda::sum_tree::of(parts);
    CHECK((t.groups - 1) * t.per_group < parts);
    CHECK(t.groups * t.per_group >= parts);
    CHECK(t.per_group * t.per_group < parts + 2 * t.per_group);
    CHECK(t.groups <= t.per_group);
  }
}
