// SPDX-License-Identifier: BSL-1.0
//
// The gradient of a table through its CUDA kernel bodies.
#include "catch.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include <pipe/base/half.hpp>

#include "cuda/one_group.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

/// A pipeline that has one group: the gradient of a table.
/// Ids: of each of the Rows / Ids rows of dy.
template <class T, int Rows, int Vocabulary, int Columns, int Ids = 1, int Padding = -1,
          bool IsMean = false>
struct one_gradient {
  using element = T;
  using leaves = detail::layers<>;
  static constexpr int samples = 1;
  static constexpr detail::group group_at(int) {
    detail::group g;
    static_assert(Rows % Ids == 0);
    g.anchor = Ids > 1 ? op_kind::bag_gradient : op_kind::lookup_gradient;
    g.rows = Rows / Ids, g.columns = Columns;
    g.attributes = detail::lookup_attributes{Vocabulary, Ids, Padding, IsMean};
    g.in[0] = 0, g.in[1] = 1, g.out[0] = 2, g.operands = 3;
    return g;
  }
};

template <class P>
void launch(cuda::arguments a, cuda::thread_order order) {
  using kernels = cuda::lowered<P, 0>;
  std::vector<char> memory(std::size_t(cuda::workspace_of(kernels{})) + 64, char(0xff));
  a.workspace = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  on_host::order = order;
  on_host::run_bodies(kernels{}, a);
  on_host::order = cuda::thread_order::ascending;
}

/// The group's kernels around a library's sort, which a stable sort of the standard library stands
/// in for, leave what the group's own kernels leave.
template <class P>
void launch_by_library(cuda::arguments a) {
  using lowering = cuda::sort_lowering<P, 0>;
  constexpr std::align_val_t alignment{256};
  constexpr std::size_t bytes = std::size_t(cuda::sort_workspace_of<P, 0, int>());
  a.workspace = ::operator new(bytes, alignment);
  std::memset(a.workspace, 0xff, bytes);
  on_host::run_bodies(typename lowering::before{}, a);
  cuda::sort_call const c = lowering::call(a);
  CHECK(static_cast<char*>(c.temporary) + c.temporary_bytes <=
        static_cast<char*>(a.workspace) + bytes);
  std::memset(c.temporary, 0x3c, c.temporary_bytes);
  std::vector<int> order(std::size_t(c.rows));
  for (int r = 0; r < c.rows; ++r) order[std::size_t(r)] = r;
  std::stable_sort(order.begin(), order.end(), [&](int i, int j) {
    return c.keys[i] % (1 << c.bits) < c.keys[j] % (1 << c.bits);
  });
  for (int r = 0; r < c.rows; ++r) {
    c.sorted_keys[r] = c.keys[order[std::size_t(r)]];
    c.sorted_values[r] = c.values[order[std::size_t(r)]];
  }
  on_host::run_bodies(typename lowering::after{}, a);
  ::operator delete(a.workspace, alignment);
}

/// `id_of(row)` of every id; the gradient against sums in double precision, alone and on top of
/// another.
template <class T, int Rows, int Vocabulary, int Columns, int Ids = 1, int Padding = -1,
          bool IsMean = false, class IdOf>
void sums_are_right(IdOf id_of, double tolerance) {
  using P = one_gradient<T, Rows, Vocabulary, Columns, Ids, Padding, IsMean>;
  std::vector<int> ids(std::size_t{Rows});
  std::vector<T> dy(std::size_t{Rows / Ids} * Columns);
  std::vector<double> expected(std::size_t{Vocabulary} * Columns), magnitude(expected.size());
  auto const is_real = [](int id) { return id >= 0 && id != Padding; };
  for (int r = 0; r < Rows; ++r) ids[std::size_t(r)] = id_of(r);
  for (int bag = 0; bag < Rows / Ids; ++bag) {
    auto const begin = ids.begin() + bag * Ids;
    long const count = std::count_if(begin, begin + Ids, is_real);
    for (int c = 0; c < Columns; ++c) {
      T& x = dy[std::size_t(bag) * Columns + std::size_t(c)];
      // What belongs to padding alone is never read.
      x = T(count == 0 ? NAN : float(laws::uniform(5, std::uint64_t(bag), std::uint64_t(c))));
      for (int i = 0; i < Ids; ++i) {
        if (!is_real(begin[i])) continue;
        std::size_t const to = std::size_t(begin[i]) * Columns + std::size_t(c);
        double const term = double(float(x)) / double(IsMean ? count : 1);
        expected[to] += term;
        magnitude[to] += std::fabs(term);
      }
    }
  }
  std::vector<float> found(expected.size(), NAN), again(expected.size(), NAN);
  cuda::arguments a;
  a.operand[0] = dy.data();
  a.operand[1] = ids.data();
  a.operand[2] = found.data();
  launch<P>(a, cuda::thread_order::ascending);
  a.operand[2] = again.data();
  launch<P>(a, cuda::thread_order::interleaved);
  CHECK(laws::same_numbers(found, again));
  std::vector<float> by_library(expected.size(), NAN);
  a.operand[2] = by_library.data();
  launch_by_library<P>(a);
  CHECK(laws::same_numbers(found, by_library));
  a.operand[2] = again.data();
  a.accumulate = true;
  launch<P>(a, cuda::thread_order::descending);
  double most = 0;
  long wrong = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double const error = std::fabs(double(found[i]) - expected[i]) / (magnitude[i] + 1e-30);
    most = std::fmax(most, error);
    wrong += !(error < tolerance) + !(again[i] == found[i] + found[i]);
  }
  CHECK(wrong == 0);
  CHECK(most < tolerance);
}

int any_of(int r, int bound) {
  return int(math::random_block(9, 1, std::uint64_t(r)).word[0] % unsigned(bound));
}

}  // namespace

TEST_CASE("the gradient of a table", "[cuda][small]") {
  SECTION("frequent and rare ids, some absent") {
    sums_are_right<float, 3001, 1500, 12>(
        [](int r) {
          return r % 7 == 3 ? -1 : r % 3 == 0 ? 1499 : r % 3 == 1 ? 0 : any_of(r, 1500);
        },
        1e-5);
  }
  SECTION("all ids are the same") {
    sums_are_right<float, 1500, 3, 5>([](int) { return 1; }, 1e-5);
  }
  SECTION("no id at all") {
    sums_are_right<float, 40, 70, 6>([](int) { return -1; }, 1e-5);
  }
  SECTION("one row") {
    sums_are_right<float, 1, 1, 1>([](int) { return 0; }, 1e-5);
  }
  SECTION("a large vocabulary, two digits of 9 bits") {
    sums_are_right<float, 700, 131071, 2>(
        [](int r) { return r % 2 == 0 ? any_of(r, 131071) : 131070 - r / 20; }, 1e-5);
  }
  SECTION("three digits") {
    sums_are_right<float, 100, 300000, 1>([](int r) { return any_of(r / 2, 300000); }, 1e-5);
  }
  SECTION("tiles of several rounds") {
    sums_are_right<float, 70001, 130, 1>([](int r) { return r % 5 < 3 ? 64 : any_of(r, 130); },
                                         1e-4);
  }
  SECTION("bags of ids, whose sums or means are taken") {
    auto const ids = [](int r) { return r % 7 == 3 || r / 4 == 5 ? -1 : any_of(r, 150); };
    sums_are_right<float, 3004, 150, 12, 4>(ids, 1e-5);
    sums_are_right<float, 3004, 150, 12, 4, 7, true>(ids, 1e-5);
    sums_are_right<bf16, 90, 150, 5, 3, 0, true>(ids, 1e-5);
    sums_are_right<float, 1200, 3, 2, 600, -1, true>([](int r) { return r % 3; }, 1e-5);
  }
  SECTION("bf16 rows give float sums") {
    sums_are_right<bf16, 901, 200, 40>([](int r) { return r % 4 == 0 ? 77 : any_of(r, 200) - 1; },
                                       1e-5);
    sums_are_right<fp16, 65, 20, 7>([](int r) { return any_of(r, 20); }, 1e-5);
  }
}
