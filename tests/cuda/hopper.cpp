// SPDX-License-Identifier: BSL-1.0
//
// TMA, mbarrier and wgmma through their twins on the CPU: a product is right whenever copies land
// and multiplications happen, and each rule that is broken is an error.
#include "catch.hpp"

#include <cmath>
#include <vector>

#include "cuda/host_roles.hpp"
#include "cuda/ring_product.hpp"
#include "golden/cute_layouts.hpp"

using namespace pp;
using Catch::Matchers::Contains;
using cuda::lateness, cuda::major, cuda::swizzle;
using hopper::rule_broken;

namespace {

/// The largest difference to fp64, of integers whose sums are exact.
template <class T, int N, int Consumers, int Slabs, major A, major B>
double difference_of(lateness when, unsigned seed, rule_broken broken = rule_broken::none) {
  using body = hopper::ring_product<T, N, Consumers, Slabs, A, B>;
  constexpr int M = body::rows, K = body::inner;
  alignas(16) static T left[std::size_t(M * K)], right[std::size_t(N * K)];
  auto const a = [](int m, int k) { return (3 * m + 5 * k + m * k % 11) % 9 - 4; };
  auto const b = [](int k, int n) { return (7 * n + k + n * k % 13) % 7 - 3; };
  for (int k = 0; k < K; ++k) {
    for (int m = 0; m < M; ++m) left[A == major::k ? m * K + k : k * M + m] = T(float(a(m, k)));
    for (int n = 0; n < N; ++n) right[B == major::k ? n * K + k : k * N + n] = T(float(b(k, n)));
  }
  std::vector<float> out(std::size_t(M * N), NAN);
  hopper::arguments const args{left, right, out.data(), broken};
  cuda::host_role_block<body> block(when, seed);
  block.begin(0);
  body::run(block, args, body::maps(args));
  double most = 0;
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      double expected = 0;
      for (int k = 0; k < K; ++k) expected += a(m, k) * b(k, n);
      double const d = std::fabs(double(out[std::size_t(m * N + n)]) - expected);
      most = d > most || std::isnan(d) ? d : most;
    }
  return most;
}
void fails(rule_broken broken, lateness when, char const* with, char const* or_with = "no such") {
  INFO("rule " << int(broken) << ", lateness " << int(when));
  for (unsigned seed : {1u, 2u, 3u})
    CHECK_THROWS_WITH((difference_of<bf16, 64, 2, 5, major::k, major::mn>(when, seed, broken)),
                      Contains(with) || Contains(or_with));
}

}  // namespace

TEST_CASE("a product by TMA and wgmma is right whenever its copies and products happen", "[cuda]") {
  for (lateness when : {lateness::late, lateness::at_once, lateness::random})
    for (unsigned seed : {1u, 2u}) {
      CHECK((difference_of<bf16, 64, 1, 3, major::k, major::k>(when, seed)) == 0);
      CHECK((difference_of<fp16, 128, 2, 3, major::k, major::mn>(when, seed)) == 0);
      CHECK((difference_of<bf16, 64, 2, 5, major::mn, major::mn>(when, seed)) == 0);
      CHECK((difference_of<fp16, 256, 1, 2, major::mn, major::k>(when, seed)) == 0);
    }
}

TEST_CASE("a broken rule of TMA, mbarrier or wgmma is an error on the CPU", "[cuda]") {
  fails(rule_broken::no_wait_for_copies, lateness::late, "before its copy is there",
        "still multiplied");
  fails(rule_broken::no_wait_for_readers, lateness::late, "an arrival too many", "at once");
  fails(rule_broken::early_release, lateness::late, "which is still multiplied");
  fails(rule_broken::late_parity, lateness::late, "before its copy is there", "still multiplied");
  fails(rule_broken::missing_bytes, lateness::late, "-128 bytes are missing");
  fails(rule_broken::more_bytes, lateness::late, "128 bytes are missing");
  fails(rule_broken::no_release, lateness::late, "8 of 8 arrivals and 0 bytes are missing");
  fails(rule_broken::release_twice, lateness::late, "an arrival too many", "still multiplied");
  fails(rule_broken::no_batch, lateness::late, "were not begun");
  fails(rule_broken::no_commit, lateness::late, "were not committed");
  fails(rule_broken::touched_sums, lateness::late, "touched while they are added");
  fails(rule_broken::unknown_barriers, lateness::at_once, "which it does not see");
  fails(rule_broken::stored_unfenced, lateness::at_once, "stored without a fence");
  for (unsigned seed : {1u, 2u})
    CHECK((difference_of<bf16, 64, 1, 3, major::k, major::k>(lateness::at_once, seed,
                                                             rule_broken::other_descriptor)) != 0);
}

TEST_CASE("TMA pads a box beyond the matrix with zeros, and refuses wrong maps", "[cuda]") {
  using cuda::map_fault;
  std::vector<bf16> matrix(40 * 24);
  cuda::tensor_map const good{matrix.data(), cuda::product_format::bf16, 40, 24, 48, 64, 64};
  CHECK(fault_of(good) == map_fault::none);
  auto const changed = [&](auto change) {
    cuda::tensor_map m = good;
    change(m);
    return fault_of(m);
  };
  CHECK(changed([](auto& m) { m.format = cuda::product_format::fp32; }) == map_fault::format);
  CHECK(changed([](auto& m) { m.rows = 0; }) == map_fault::extents);
  CHECK(changed([](auto& m) { m.pitch = 52; }) == map_fault::pitch);
  CHECK(changed([](auto& m) { m.pitch = 32; }) == map_fault::pitch);
  CHECK(changed([](auto& m) { m.box_rows = 257; }) == map_fault::box);
  CHECK(changed([](auto& m) { m.box_columns = 72; }) == map_fault::span);
  CHECK(changed([](auto& m) { m.box_columns = 60; }) == map_fault::span);
  CHECK(changed([](auto& m) { m.box_columns = 128, m.pattern = swizzle::none; }) ==
        map_fault::none);

  for (int i = 0; i < 40 * 24; ++i) matrix[std::size_t(i)] = bf16(float(i % 199 + 1));
  struct memory {
    alignas(1024) bf16 box[64 * 64];
    cuda::mbarrier done;
  } static shared;
  cuda::role_machine machine(lateness::at_once, 1);
  machine.begin(&shared, sizeof shared);
  machine.begin_barrier(&shared.done, 1);
  machine.fence();
  machine.arrive(&shared.done, box_bytes(good));
  machine.copy_box(shared.box, good, 16, 8, &shared.done);
  bool is_right = true;
  for (int r = 0; r < 64; ++r)
    for (int c = 0; c < 64; ++c) {
      unsigned const at = cuda::swizzled(swizzle::bytes_128, unsigned(r * 64 + c) * 2) / 2;
      bool const inside = 16 + r < 40 && 8 + c < 24;
      float const expected = inside ? float(matrix[std::size_t((16 + r) * 24 + 8 + c)]) : 0.0f;
      is_right = is_right && float(shared.box[at]) == expected;
    }
  CHECK(is_right);
}

TEST_CASE("operands and sums of wgmma lie where CUTLASS puts them", "[cuda]") {
  int checked = 0;
  for (golden::cute_operand const& g : golden::cute_operands) {
    INFO(g.pattern_bytes << " bytes, along " << (g.is_along_k ? "k" : "mn") << ", " << g.extent);
    cuda::wgmma_operand const o = cuda::decode(g.descriptor);
    CHECK(cuda::encode(o) == g.descriptor);
    CHECK(cuda::span_of(o.pattern) == g.pattern_bytes);
    CHECK(o.start == 0);
    int const* place = g.places;
    for (int const k : golden::cute_k)
      for (int const mn : golden::cute_mn) {
        CHECK(int(cuda::place_of(o, g.is_along_k ? major::k : major::mn, mn, k)) == *place++);
        ++checked;
      }
  }
  CHECK(checked == 16 * 35);
  for (golden::cute_sum const& s : golden::cute_sums) {
    cuda::tile_place const p = cuda::place_in_wgmma(s.thread, s.i);
    CHECK(p.row == s.row);
    CHECK(p.column == s.column);
  }
}
