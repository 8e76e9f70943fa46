// SPDX-License-Identifier: BSL-1.0
//
// Products by TMA and wgmma through their twin on the CPU.
#include "catch.hpp"

#include <algorithm>

#include "cuda/host_block.hpp"
#include "cuda/host_roles.hpp"
#include "cuda/wgmma_agreement.hpp"

using namespace pp;
using cuda::lateness;
using namespace wgmma_agreement;

namespace {

lateness when = lateness::late;
unsigned seed = 1;

template <class Body>
void run_one(cuda::arguments const& a) {
  if constexpr (requires { typename Body::launch_arguments; }) {
    cuda::host_role_block<Body> block(when, seed);
    for (cuda::extent i = 0; i < Body::blocks(a); ++i) {
      block.begin(i);
      Body::run(block, a, Body::maps(a));
    }
  } else {
    cuda::run_on_host<Body>(a);
  }
}
template <class... Body>
void run_all(cuda::kernel_list<Body...>, cuda::arguments const& a) {
  (run_one<Body>(a), ...);
}

/// The bytes of all that a product's kernels write, in rows that are there if there are segments;
/// operands have NaN behind these rows.
template <class P, class Kernels>
std::vector<unsigned char> results_of(Kernels kernels, bool accumulate,
                                      detail::segment_list const* segments = nullptr) {
  using o = operands<P>;
  using T = typename P::element;
  using out = typename o::out;
  std::vector<T> x = o::numbers(0), w = o::numbers(1), bias = o::numbers(3);
  std::vector<out> y(o::size_of(2), out(accumulate ? 3.0f : NAN));
  std::vector<float> sums(o::size_of(3), accumulate ? 3.0f : NAN);
  std::vector<T> z(o::size_of(4) + 1, T(NAN));
  std::vector<float> workspace(std::size_t(cuda::workspace_of(kernels)) / sizeof(float) + 1, NAN);
  std::vector<unsigned> tickets(std::size_t(cuda::most_tickets), 0);
  cuda::arguments a;
  a.operand[0] = x.data(), a.operand[1] = w.data(), a.operand[2] = y.data();
  a.operand[3] = P::is_weight ? static_cast<void*>(sums.data()) : bias.data();
  a.operand[4] = z.data();
  a.workspace = workspace.data(), a.tickets = tickets.data(), a.accumulate = accumulate;
  if (segments != nullptr) {
    auto const rows = std::size_t(segments->rows);
    a.segments = segments;
    std::fill(x.begin() + long(rows * P::inner), x.end(), T(NAN));
    if (P::is_weight) std::fill(w.begin() + long(rows * P::columns), w.end(), T(NAN));
  }
  run_all(kernels, a);
  std::vector<unsigned char> bytes;
  auto const add = [&](auto const& list) {
    auto const* const from = reinterpret_cast<unsigned char const*>(list.data());
    bytes.insert(bytes.end(), from, from + list.size() * sizeof list[0]);
  };
  if (segments != nullptr && !P::is_weight)
    y.resize(std::size_t(segments->rows) * P::columns), z.resize(y.size());
  add(y), add(z), add(sums);
  return bytes;
}
template <class P, cuda::wgmma_plan Plan>
void agrees(bool accumulate = false) {
  STATIC_REQUIRE(cuda::fits_wgmma<P, 0>());
  auto const expected = results_of<P>(cuda::lower_contraction<P, 0>(), accumulate);
  for (lateness l : {lateness::late, lateness::at_once, lateness::random}) {
    when = l, ++seed;
    CHECK((results_of<P>(cuda::lower_wgmma<P, 0, Plan>(), accumulate) == expected));
  }
}

/// A product in a pipeline with Lengths.
template <class P>
struct of_lengths : P {
  static constexpr int length_block = 32;
};
template <class P, cuda::wgmma_plan Plan>
void agrees_with_lengths(bool accumulate = false) {
  using of = of_lengths<P>;
  int const first[] = {0, 64, 160};
  std::vector<int> segment(64, 0);
  segment.resize(160, 1);
  detail::segment_list list;
  list.rows = 160, list.count = 2, list.planned_rows = P::rows;
  list.first = first, list.segment = segment.data();
  auto const expected = results_of<of>(cuda::lower_contraction<of, 0>(), accumulate, &list);
  for (lateness l : {lateness::late, lateness::at_once, lateness::random}) {
    when = l, ++seed;
    CHECK((results_of<of>(cuda::lower_wgmma<of, 0, Plan>(), accumulate, &list) == expected));
  }
}

/// A product that leaves multiprocessors to others.
template <class P, int Reserved>
struct leaving : P {
  static constexpr int reserved_multiprocessors = Reserved;
};

constexpr cuda::wgmma_plan wide{256, 3}, narrow{128, 4};
template <class T, int R, int K, int N>
using forward = one_product<T, op_kind::matmul, R, K, N>;
template <class T, int R, int K, int N>
using turned = one_product<T, op_kind::matmul_input_gradient, R, K, N, true>;
template <class T, int R, int K, int N>
using weight = one_product<T, op_kind::matmul_weight_gradient, R, K, N>;

}  // namespace

TEST_CASE("a product by wgmma is that of the kernels for every GPU", "[cuda]") {
  agrees<forward<bf16, 150, 200, 136>, narrow>();
  agrees<forward<fp16, 40, 72, 264>, wide>();
  agrees<turned<fp16, 130, 328, 72>, narrow>();
  agrees<turned<bf16, 24, 64, 264>, wide>();
  agrees<weight<bf16, 136, 152, 72>, narrow>(true);
  agrees<weight<fp16, 72, 24, 264>, wide>();
}

TEST_CASE("a product by wgmma of rows of several lengths", "[cuda]") {
  agrees_with_lengths<forward<bf16, 320, 72, 264>, narrow>();
  agrees_with_lengths<weight<bf16, 320, 72, 264>, narrow>(true);
  agrees_with_lengths<weight<bf16, 320, 152, 72>, wide>();
}

TEST_CASE("blocks of a product by wgmma go from tile to tile", "[cuda][long]") {
  using P = forward<bf16, 8, 8, 128 * 134>;  // two blocks have two tiles
  STATIC_REQUIRE(cuda::wgmma_tiles<P, 0, narrow>::tiles == 134);
  STATIC_REQUIRE(cuda::wgmma_tiles<P, 0, narrow>::resident_blocks == 132);
  auto const expected = results_of<P>(cuda::lower_contraction<P, 0>(), false);
  CHECK((results_of<P>(cuda::lower_wgmma<P, 0, narrow>(), false) == expected));
  using with_nccl = leaving<P, 16>;
  STATIC_REQUIRE(cuda::wgmma_tiles<with_nccl, 0, narrow>::resident_blocks == 116);
  CHECK((results_of<with_nccl>(cuda::lower_wgmma<with_nccl, 0, narrow>(), false) == expected));
}

TEST_CASE("a product by wgmma is planned by its shape", "[cuda]") {
  STATIC_REQUIRE(cuda::wgmma_plan_for({8192, 768, 3072}) == narrow);
  STATIC_REQUIRE(cuda::wgmma_plan_for({8192, 3072, 768}) == wide);
  STATIC_REQUIRE(cuda::wgmma_plan_for({8192, 50304, 768}) == wide);
  STATIC_REQUIRE(cuda::suits_wgmma<forward<bf16, 8192, 768, 768>, 0>());
  STATIC_REQUIRE(!cuda::suits_wgmma<weight<bf16, 8192, 768, 768>, 0>());  // too few tiles
  STATIC_REQUIRE(!cuda::suits_wgmma<forward<float, 8192, 768, 768>, 0>());
  STATIC_REQUIRE(!cuda::suits_wgmma<forward<bf16, 8192, 768, 772>, 0>());  // rows of 1544 bytes
  STATIC_REQUIRE(!cuda::fits_wgmma<turned<bf16, 64, 68, 64>, 0>());
  STATIC_REQUIRE(cuda::most_shared_bytes(cuda::lower_wgmma<forward<bf16, 64, 64, 64>, 0, wide>()) <=
                 cuda::wgmma_shared_bytes);
  STATIC_REQUIRE(
      cuda::most_shared_bytes(cuda::lower_wgmma<forward<bf16, 64, 64, 64>, 0, narrow>()) <=
      cuda::wgmma_shared_bytes);
}
