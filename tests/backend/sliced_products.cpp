// SPDX-License-Identifier: BSL-1.0
//
// Products of slices of bfloat16, on every instruction set, against the manuals of TDPBF16PS and
// VDPBF16PS in plain code: the emulations, and the instructions. AMX's is, on a processor without
// AMX, executed by a handler.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "backend/amx_model.hpp"
#include "backend/lone_kernel.hpp"

using namespace pp;
using host::extent;
using host::product_unit;

namespace {

/// Numbers of any exponent; with `specials`, one of a hundred is a zero, subnormal, infinite, not a
/// number, or near the end of what is normal.
std::vector<float> numbers(extent n, unsigned seed, bool specials, int exponents = 60) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  float const special[]{0.0f,          -0.0f,    0x1p-127f,    -0x1.8p-130f, 0x1p-126f,
                        -0x1.02p-126f, 0x1p-63f, 0x1p-64f,     0x1.fep127f,  0x1.fffffep127f,
                        inf,           -inf,     std::nanf("")};
  std::mt19937 random(seed);
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) {
    v = std::ldexp(float(int(random() >> 8) - (1 << 23)) / float(1 << 23),
                   int(random() % unsigned(exponents)) - exponents / 2);
    if (specials && random() % 100 == 0) v = special[random() % std::size(special)];
  }
  return x;
}
/// Numbers whose products are around the smallest normal number.
std::vector<float> small_numbers(extent n, unsigned seed) {
  std::vector<float> x = numbers(n, seed, false, 8);
  for (float& v : x) v *= 0x1p-63f;
  return x;
}

template <class V>
std::vector<V> stored(std::vector<float> const& x) {
  std::vector<V> all;
  for (float v : x) all.push_back(V(v));
  return all;
}

template <class V, int Slices, class Test>
void with_every_set(Test test) {
  test("portable", host::portable::products_of<float, V, 1, Slices>);
#ifdef __x86_64__
  if (host::best_isa() >= host::isa::avx2)
    test("avx2", host::avx2::products_of<float, V, 1, Slices>);
  if (host::best_isa() >= host::isa::avx512)
    test("avx512", host::avx512::products_of<float, V, 1, Slices>);
#endif
}

struct shape_and_form {
  extent m, n, k;
  bool transposed, adds;
};

/// c (+)= a b by a unit.
template <class V>
std::vector<float> product(host::value_products<float, V> const& set, product_unit unit,
                           shape_and_form const& s, std::vector<V> const& a,
                           std::vector<V> const& b) {
  std::vector<float> c(std::size_t(s.m * s.n), 2.0f);
  host::contraction_ends<float> ends;
  ends.c = c.data();
  ends.ldc = s.n;
  ends.adds = s.adds;
  workspace space{
      std::size_t(host::product_workspace<float, V>(s.m, s.n, s.k, set.sliced->slices))};
  host::strided<V const> const left{a.data(), s.transposed ? 1 : s.k, s.transposed ? s.m : 1};
  host::contract_values<float, V>(set, unit, {{s.m, s.n, s.k}, left, b.data(), s.n}, ends,
                                  space.at);
  return c;
}

/// The same by the model, where an element that is not finite is computed in fp32 if there are
/// several slices.
template <class V>
std::vector<float> expected(product_unit unit, int slices, bool fuses, shape_and_form const& s,
                            std::vector<V> const& a, std::vector<V> const& b) {
  std::vector<float> c(std::size_t(s.m * s.n), 2.0f), x(std::size_t(s.k)), y(x);
  for (extent i = 0; i < s.m; ++i)
    for (extent j = 0; j < s.n; ++j) {
      for (extent p = 0; p < s.k; ++p) {
        x[std::size_t(p)] = float(a[std::size_t(s.transposed ? p * s.m + i : i * s.k + p)]);
        y[std::size_t(p)] = float(b[std::size_t(p * s.n + j)]);
      }
      float sum = host::multiplies_pairs(unit) ? amx_model::product_of_pairs(x, y)
                                               : amx_model::product(slices, x, y);
      if (slices > 1 && !std::isfinite(sum)) {
        sum = 0;
        for (std::size_t p = 0; p < x.size(); ++p)
          sum = fuses ? std::fma(x[p], y[p], sum) : sum + x[p] * y[p];
      }
      float& to = c[std::size_t(i * s.n + j)];
      to = s.adds ? to + sum : sum;
    }
  return c;
}

bool same(std::vector<float> const& a, std::vector<float> const& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return amx_model::bits(x) == amx_model::bits(y); });
}

// One element; tails of all kinds; several blocks of rows, of columns, of the sum.
constexpr shape_and_form shapes[]{{1, 1, 1, false, false},    {3, 5, 2, false, true},
                                  {17, 33, 31, true, false},  {16, 16, 32, false, false},
                                  {33, 97, 65, true, true},   {40, 48, 530, false, false},
                                  {9, 130, 1030, true, true}, {259, 20, 40, false, true},
                                  {8, 24, 200, false, false}, {5, 790, 34, false, false}};

template <class V, int Slices>
void has_the_bits_of_the_manual(product_unit unit, long most_products) {
  with_every_set<V, Slices>([&](char const* name, auto const& set) {
    if (unit == product_unit::avx512_bf16 && set.sliced->multiply_pairs == nullptr) return;
    for (shape_and_form const& s : shapes) {
      if (s.m * s.n * s.k > most_products) continue;
      INFO(name << ": " << s.m << " x " << s.n << " x " << s.k);
      bool const fuses = std::string(name) != "portable";
      for (bool const specials : {false, true}) {
        auto const a = stored<V>(numbers(s.m * s.k, 1, specials)),
                   b = stored<V>(numbers(s.k * s.n, 2, specials));
        CHECK(same(product(set, unit, s, a, b), expected(unit, Slices, fuses, s, a, b)));
      }
      // Products of about one size, which show the order of all sums, and products around the
      // smallest normal number.
      for (bool const small : {false, true}) {
        auto const of = [&](extent n, unsigned seed) {
          return stored<V>(small ? small_numbers(n, seed) : numbers(n, seed, false, 1));
        };
        auto const a = of(s.m * s.k, 3), b = of(s.k * s.n, 4);
        CHECK(same(product(set, unit, s, a, b), expected(unit, Slices, fuses, s, a, b)));
      }
    }
  });
}

/// The root mean square of c - a b, over that of a b, both in fp64.
double error_of(std::vector<float> const& c, shape_and_form const& s, std::vector<float> const& a,
                std::vector<float> const& b) {
  double apart = 0, size = 0;
  for (extent i = 0; i < s.m; ++i)
    for (extent j = 0; j < s.n; ++j) {
      double sum = 0;
      for (extent p = 0; p < s.k; ++p)
        sum += double(a[std::size_t(i * s.k + p)]) * double(b[std::size_t(p * s.n + j)]);
      double const d = double(c[std::size_t(i * s.n + j)]) - sum;
      apart += d * d, size += sum * sum;
    }
  return std::sqrt(apart / size);
}

}  // namespace

TEST_CASE("the emulation of AMX has the bits of its manual", "[backend]") {
  has_the_bits_of_the_manual<bf16, 1>(product_unit::emulated_amx, 300000);
}
TEST_CASE("the emulation of AVX-512-BF16 has the bits of its manual", "[backend]") {
  has_the_bits_of_the_manual<bf16, 1>(product_unit::emulated_avx512_bf16, 300000);
}
TEST_CASE("AVX-512-BF16 has the bits of its manual where it is used", "[backend]") {
  if (host::has_fast_avx512_bf16())
    has_the_bits_of_the_manual<bf16, 1>(product_unit::avx512_bf16, 300000);
  else
    WARN("skipped: this processor does not multiply by AVX-512-BF16");
}
TEST_CASE("fp32 in slices has the bits of its definition", "[backend]") {
  has_the_bits_of_the_manual<float, 2>(product_unit::emulated_amx, 60000);
  has_the_bits_of_the_manual<float, 3>(product_unit::emulated_amx, 60000);
}
#if defined(__x86_64__) && defined(__linux__)
TEST_CASE("AMX's instructions are used as its manual asks", "[backend]") {
  amx_model::instructions const run;
  has_the_bits_of_the_manual<bf16, 1>(product_unit::amx, 60000);
  has_the_bits_of_the_manual<float, 3>(product_unit::amx, 20000);
  if (run.are_there) return;
  CHECK(amx_model::state.products > 0);
  CHECK_FALSE(amx_model::state.configured);
}
#endif
TEST_CASE("units of products have one result", "[backend]") {
  with_every_set<float, 3>([&](char const* name, auto const& set) {
    if (std::string(name) == "portable") return;
    // Blocks beyond the first in every direction: any m has the same rows, and any n the same
    // columns.
    shape_and_form const all{270, 800, 530, false, false}, some{13, 800, 530, false, false};
    auto const a = numbers(all.m * all.k, 5, false), b = numbers(all.k * all.n, 6, false);
    auto const c = product(set, product_unit::emulated_amx, all, a, b),
               few = product(set, product_unit::emulated_amx, some, a, b);
    CHECK(same(std::vector<float>(c.begin(), c.begin() + some.m * some.n), few));
  });
}
TEST_CASE("fp32 in three slices errs no more than a chain of multiply-adds", "[backend]") {
  with_every_set<float, 3>([&](char const* name, auto const& set) {
    if (std::string(name) == "portable") return;
    for (shape_and_form const& s : {shape_and_form{32, 48, 96, false, false},
                                    {64, 64, 384, false, false},
                                    {20, 100, 1024, false, false}}) {
      INFO(name << ": " << s.m << " x " << s.n << " x " << s.k);
      auto const a = numbers(s.m * s.k, 7, false, 1), b = numbers(s.k * s.n, 8, false, 1);
      auto const in_slices = product(set, product_unit::emulated_amx, s, a, b),
                 in_a_chain = product(set, product_unit::vectors, s, a, b);
      CHECK(error_of(in_slices, s, a, b) <= error_of(in_a_chain, s, a, b));
    }
  });
}
TEST_CASE("fp32 in two slices errs less than tf32", "[backend]") {
  // A factor is off by 2^-17 of itself, a tf32 number by 2^-11.
  with_every_set<float, 2>([&](char const* name, auto const& set) {
    if (std::string(name) == "portable") return;
    shape_and_form const s{32, 48, 96, false, false};
    auto const a = numbers(s.m * s.k, 7, false, 1), b = numbers(s.k * s.n, 8, false, 1);
    CHECK(error_of(product(set, product_unit::emulated_amx, s, a, b), s, a, b) < 0x1p-15);
  });
}
TEST_CASE("small numbers in three slices err within the bound", "[backend]") {
  with_every_set<float, 3>([&](char const* name, auto const& set) {
    if (std::string(name) == "portable") return;
    INFO(name);
    shape_and_form const s{16, 16, 40, false, false};
    for (float const scale : {0x1p-60f, 0x1p-70f, 0x1p-100f, 0x1p-120f})
      for (float const other : {1.0f, 0x1p-20f, 0x1p20f}) {
        auto a = numbers(s.m * s.k, 9, false, 8), b = numbers(s.k * s.n, 10, false, 8);
        for (float& x : a) x *= scale;
        for (float& x : b) x *= other;
        auto const c = product(set, product_unit::emulated_amx, s, a, b);
        bool within = true;
        for (extent i = 0; i < s.m; ++i)
          for (extent j = 0; j < s.n; ++j) {
            double sum = 0, absolute = 0, factors = 0;
            for (extent p = 0; p < s.k; ++p) {
              double const x = double(a[std::size_t(i * s.k + p)]),
                           y = double(b[std::size_t(p * s.n + j)]);
              sum += x * y, absolute += std::fabs(x * y), factors += std::fabs(x) + std::fabs(y);
            }
            within = within && std::fabs(double(c[std::size_t(i * s.n + j)]) - sum) <=
                                   double(s.k) * 0x1p-24 * absolute + 0x1p-125 * factors +
                                       double(s.k) * 0x1p-123;
          }
        CHECK(within);
      }
  });
}
TEST_CASE("infinities and NaN in slices are those of fp32", "[backend]") {
  constexpr float inf = std::numeric_limits<float>::infinity(), most = 0x1.fffffep127f;
  with_every_set<float, 3>([&](char const*, auto const& set) {
    shape_and_form const s{1, 1, 2, false, false};
    auto const of = [&](float a0, float b0, float a1, float b1) {
      return product<float>(set, product_unit::emulated_amx, s, {a0, a1}, {b0, b1})[0];
    };
    CHECK(of(inf, 1.2345678f, 1, 1) == inf);
    CHECK(of(-1.2345678f, inf, 1, 1) == -inf);
    CHECK(std::isnan(of(inf, 0, 1, 1)));
    CHECK(std::isnan(of(inf, 1, -inf, 1)));
    CHECK(std::isnan(of(std::nanf(""), 1, 1, 1)));
    CHECK(of(most, 1, 0, 0) == most);
    CHECK(of(most, 1, 1, 1) == most);
    CHECK(of(0x1.ffep63f, 0x1.ffep63f, 0, 0) == 0x1.ffep63f * 0x1.ffep63f);
    CHECK(of(most, 2, 0, 0) == inf);
  });
}
