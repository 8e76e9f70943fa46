// SPDX-License-Identifier: BSL-1.0
//
// Attention of values in bfloat16 by AMX, on every instruction set: its emulation against the
// definition in double, and the instruction, on a processor with AMX its own, elsewhere as a
// handler executes it, against the emulation.
#include "catch.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/amx_model.hpp"
#include "backend/attention_reference.hpp"

using namespace pp;
using namespace attention_reference;
using host::product_unit;

namespace {

using narrow = run<float, bf16>;
using rules = detail::score_attributes;

/// One case: a shape, and how its rows are read.
struct example {
  attention_shape shape;
  bool rotated = false;
  int padding = 0;
};
attention_shape with(attention_shape shape, rules const& scores) {
  shape.scores = scores;
  if (scores.is_masked) shape.mask = &detail::mask_row<Checks>;
  return shape;
}
/// Lengths and heads below, at and beyond a tile, a block of queries and a block of keys; shared
/// key heads, other lengths of queries than of keys; every rule of scores.
std::vector<example> examples() {
  std::vector<example> all;
  for (bool const causal : {false, true}) {
    for (extent const n : {1, 5, 16, 33, 128, 150}) all.push_back({{1, n, n, 1, 1, 16, causal}});
    for (extent const d : {1, 33, 40, 100}) all.push_back({{1, 40, 40, 2, 2, d, causal}});
    all.push_back({{3, 20, 20, 4, 2, 8, causal}});
    all.push_back({{2, 35, 140, 3, 1, 5, causal}});
    all.push_back({{1, 3, 290, 2, 2, 16, causal}});
    all.push_back({{2, 70, 70, 2, 1, 34, causal}, true});
    all.push_back({{1, 20, 150, 2, 2, 8, causal}, true});
    all.push_back({{3, 40, 40, 2, 2, 8, causal}, true, 7});
    all.push_back({{2, 30, 270, 4, 2, 10, causal}, false, 141});
    all.push_back({with({2, 70, 70, 2, 1, 6, causal}, {.cap = 2, .has_alibi = true})});
    all.push_back({with({1, 270, 270, 2, 1, 6, causal}, {.cap = 1, .is_masked = true}), true, 3});
  }
  attention_shape const long_one{1, 170, 170, 2, 1, 6, true};
  for (int const window : {1, 40, 129}) all.push_back({with(long_one, {.window = window})});
  all.push_back({with(long_one, {.prefix = 140}), false, 4});
  all.push_back({{2, 150, 20, 2, 1, 16, false}, false, 10});
  return all;
}

narrow result_of(auto kernels, example const& e, product_unit unit) {
  narrow all(e.shape, e.rotated, e.padding);
  all.with.unit = unit;
  all.forward(kernels);
  all.backward(kernels);
  return all;
}

template <class V>
bool same(exact<V> const& a, exact<V> const& b) {
  return std::memcmp(a.data(), b.data(), a.count * sizeof(V)) == 0;
}
/// What defines both units, and multiplies on every machine.
constexpr product_unit emulations[]{product_unit::emulated_amx, product_unit::emulated_avx512_bf16};
bool same(narrow const& a, narrow const& b) {
  return same(a.out, b.out) && same(a.lse, b.lse) && same(a.dq, b.dq) && same(a.dk, b.dk) &&
         same(a.dv, b.dv);
}

/// The largest error of an element, over the sum of its absolute terms.
double error_of(exact<bf16> const& got, std::vector<double> const& wanted,
                std::vector<double> const& terms) {
  double most = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    double const share = std::fabs(real(got.items[i]) - wanted[i]) / (terms[i] + 1e-6);
    if (!(share <= most)) most = share;
  }
  return most;
}
/// The norm of the error, over the norm of the result.
double distance_of(exact<bf16> const& got, std::vector<double> const& wanted) {
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    double const d = real(got.items[i]) - wanted[i];
    apart += d * d, size += wanted[i] * wanted[i];
  }
  return std::sqrt(apart / size);
}

}  // namespace

TEST_CASE("attention of bfloat16 factors is near its definition", "[backend]") {
  // Rounding takes 2^-8 of a number at most: of probabilities and gradients of scores as factors,
  // of results, and of the result in the mean of a row's slopes. Rotated queries and keys are
  // rounded, too, which moves a score by 2^-7 of its terms, and probabilities by twice as much of
  // themselves.
  for (example const& e : examples()) {
    reference const wanted = naive(narrow(e.shape, e.rotated, e.padding), true);
    auto const& terms = wanted.of_terms;
    double const bound = 0x1p-6 * (e.rotated ? 1 + 2 * terms.score : 1);
    on_every_isa([&](auto kernels) {
      attention_shape const& s = e.shape;
      CAPTURE(kernels.name, s.samples, s.queries, s.keys, s.heads, s.kv_heads, s.head_size,
              s.causal, s.scores.window, s.scores.prefix, s.scores.is_masked, e.rotated, e.padding);
      for (product_unit const unit : emulations) {
        narrow const got = result_of(kernels, e, unit);
        CHECK(error_of(got.out, wanted.out, terms.out) < bound / 2);
        CHECK(error_of(got.dq, wanted.dq, terms.dq) < bound);
        CHECK(error_of(got.dk, wanted.dk, terms.dk) < bound);
        CHECK(error_of(got.dv, wanted.dv, terms.dv) < bound / 2);
        CHECK(distance(got.lse, wanted.lse) < (e.rotated ? 0x1p-7 * terms.score : 2e-5));
        if (s.head_size < 16 || s.queries < 16) continue;
        CHECK(distance_of(got.out, wanted.out) < 0x1p-8);
        CHECK(distance_of(got.dq, wanted.dq) < 0x1p-8);
        CHECK(distance_of(got.dk, wanted.dk) < 0x1p-8);
        CHECK(distance_of(got.dv, wanted.dv) < 0x1p-8);
      }
    });
  }
}

#if defined(__x86_64__) && defined(__linux__)
TEST_CASE("attention by AMX's instructions has the bits of the emulation", "[backend]") {
  amx_model::instructions const run;
  for (example const& e : examples())
    on_every_isa([&](auto kernels) {
      extent const work = e.shape.samples * e.shape.heads * e.shape.queries * e.shape.keys;
      if (work > 10000) return;  // instructions are executed one by one
      CAPTURE(kernels.name, e.shape.queries, e.shape.keys, e.shape.head_size, e.shape.causal);
      CHECK(same(result_of(kernels, e, product_unit::amx),
                 result_of(kernels, e, product_unit::emulated_amx)));
    });
  if (run.are_there) return;
  CHECK(amx_model::state.products > 0);
  CHECK_FALSE(amx_model::state.configured);
}
#endif
TEST_CASE("attention by AVX-512-BF16 has the bits of the emulation where it is used", "[backend]") {
#ifdef __x86_64__
  if (host::has_fast_avx512_bf16()) {
    for (example const& e : examples())
      CHECK(same(result_of(avx512_kernels{}, e, product_unit::avx512_bf16),
                 result_of(avx512_kernels{}, e, product_unit::emulated_avx512_bf16)));
    return;
  }
#endif
  WARN("skipped: this processor does not multiply by AVX-512-BF16");
}
TEST_CASE("attention of bfloat16 factors of a sample has the same bits in every micro-batch",
          "[backend]") {
  attention_shape const three{3, 50, 50, 4, 2, 24, true}, one{1, 50, 50, 4, 2, 24, true};
  product_unit const unit = GENERATE(values({emulations[0], emulations[1]}));
  on_every_isa([&](auto kernels) {
    narrow const batch = result_of(kernels, {three, true}, unit);
    for (extent b = 0; b < 3; ++b) {
      narrow alone(one, true);
      alone.with.unit = unit;
      auto const is_part = [&](exact<bf16> const& part, exact<bf16> const& of) {
        return std::memcmp(part.data(), of.data() + b * extent(part.count),
                           part.count * sizeof(bf16)) == 0;
      };
      auto const copy = [&](exact<bf16>& to, exact<bf16> const& from) {
        for (extent i = 0; i < extent(to.count); ++i) to[i] = from[b * extent(to.count) + i];
      };
      copy(alone.q, batch.q), copy(alone.k, batch.k), copy(alone.v, batch.v);
      copy(alone.dout, batch.dout);
      alone.forward(kernels);
      alone.backward(kernels);
      CHECK(is_part(alone.out, batch.out));
      CHECK(is_part(alone.dq, batch.dq));
      CHECK(is_part(alone.dk, batch.dk));
      CHECK(is_part(alone.dv, batch.dv));
    }
  });
}
TEST_CASE("attention of bfloat16 factors reads no padding, and keeps NaN in its row", "[backend]") {
  product_unit const unit = GENERATE(values({emulations[0], emulations[1]}));
  on_every_isa([&](auto kernels) {
    example const e{{2, 40, 140, 2, 1, 20, true}, true, 39};
    narrow const clean = result_of(kernels, e, unit);
    narrow dirty(e.shape, e.rotated, e.padding);
    dirty.with.unit = unit;
    bf16 const nan(std::numeric_limits<float>::quiet_NaN());
    for (extent i = (140 + 101) * 20; i < 2 * 140 * 20; ++i) dirty.k[i] = dirty.v[i] = nan;
    dirty.forward(kernels);
    dirty.backward(kernels);
    CHECK(same(clean, dirty));

    narrow at({1, 20, 20, 1, 1, 4, true});
    at.with.unit = unit;
    at.q[5 * 4] = nan;
    at.forward(kernels);
    for (extent i = 0; i < 80; ++i) CHECK(std::isnan(float(at.out[i])) == (i / 4 == 5));
  });
}
