// SPDX-License-Identifier: BSL-1.0
//
// The sum of a tensor core: cases worked out by hand from what docs/explanation/gpu_correctness.md
// says of it, and random ones against a second, plain form of the model.
#include "catch.hpp"

#include <initializer_list>
#include <random>

#include "cuda/tensor_core.hpp"
#include "ptx/numbers.hpp"
#include "ptx/product.hpp"

namespace {

constexpr int bf16 = -126, fp16 = -14;  // the least exponents
constexpr float largest = 0x1.fffffep127f;
float const infinite = HUGE_VALF, none = std::nanf("");

/// c + the products of neighbours in `factors`, as an element of a product of depth 16.
template <int Least = bf16>
float sum(float c, std::initializer_list<float> factors) {
  float a[16][16]{}, b[16][8]{}, sums[16][8]{};
  int k = 0;
  for (auto f = factors.begin(); f != factors.end(); f += 2, ++k) a[3][k] = f[0], b[k][5] = f[1];
  sums[3][5] = c;
  ptx::add_product<16, Least>(sums, a, b);
  return sums[3][5];
}
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

}  // namespace

TEST_CASE("products: exact where the terms are near each other") {
  CHECK(sum(5, {1, 2, 3, 4}) == 19);
  CHECK(sum(-5, {1, 2, 3, 1}) == 0);
  CHECK(bits(sum(-5, {1, 2, 3, 1})) == 0);
  CHECK(sum(1, {0x1p-10f, 0x1p-10f, -0x1p-11f, 0x1p-11f}) == 1 + 0x1p-20f - 0x1p-22f);
}

TEST_CASE("products: a term is cut 25 places below the largest exponent") {
  float const p = 0x1p-12f, q = 0x1p-13f;
  CHECK(sum(1, {p, q, p, q, p, q, p, q}) == 1 + 0x1p-23f);  // four times 2^-25 are kept
  CHECK(sum(1, {q, q, q, q, q, q, q, q, q, q, q, q, q, q, q, q}) ==
        1);  // eight times 2^-26 are not
  CHECK(sum(-1, {q, q, q, q, q, q, q, q, q, q, q, q, q, q, q, q}) == -1);  // nor from below
  CHECK(sum(1, {-q, q}) == 1);               // towards zero, not downwards
  CHECK(sum(0x1p-26f, {1, 1, 1, -1}) == 0);  // the accumulator is a term like the others
  CHECK(sum(0x1p-25f, {1, 1, 1, -1}) == 0x1p-25f);
}

TEST_CASE("products: the exponent of a product is the sum of its factors'") {
  CHECK(sum(0x1p-25f, {1.5f, 1.5f, -1.5f, 1.5f}) == 0x1p-25f);  // that of 2.25 is 0 here
  CHECK(sum(0x1p-25f, {2, 1, -2, 1}) == 0);
}

TEST_CASE("products: the sum is cut to a float") {
  CHECK(sum(1, {0x1p-12f, 0x1.8p-12f}) == 1);  // 1 + 0.75 2^-23
  CHECK(sum(-1, {-0x1p-12f, 0x1.8p-12f}) == -1);
  CHECK(sum(0x1.fffffep0f, {0x1p-12f, 0x1p-12f}) == 0x1.fffffep0f);
  CHECK(sum(1, {-0x1p-12f, 0x1p-13f}) == 1 - 0x1p-24f);  // 1 - 2^-25, towards zero
}

TEST_CASE("products: subnormal numbers count, with the exponent of the least normal one") {
  CHECK(sum(0, {0x1p-133f, 0x1p100f}) == 0x1p-33f);
  CHECK(sum(0, {0x1p-70f, 0x1p-70f}) == 0x1p-140f);
  CHECK(sum(0, {0x1.8p-75f, 0x1p-74f}) == 0x1p-149f);
  CHECK(sum(0x1p-149f, {0, 1}) == 0x1p-149f);
  CHECK(sum<fp16>(0, {0x1p-24f, 0x1p-24f}) == 0x1p-48f);
  CHECK(sum<fp16>(0x1p-40f, {0x1p-24f, 1}) == 0x1p-24f);  // 26 places below 2^-14
  CHECK(sum<bf16>(0x1p-40f, {0x1p-24f, 1}) == 0x1p-24f + 0x1p-40f);
}

TEST_CASE("products: zeros have no exponent") {
  CHECK(sum(0x1p-100f, {0, 0x1p127f, 0x1p127f, 0}) == 0x1p-100f);
  CHECK(sum(0, {0, 0}) == 0);
}

TEST_CASE("products: too large a sum is infinite, too large a product is not") {
  CHECK(sum(largest, {0x1p64f, 0x1p63f}) == infinite);
  CHECK(sum(-largest, {-0x1p64f, 0x1p63f}) == -infinite);
  CHECK(sum(largest, {0x1p50f, 0x1p53f}) == largest);  // 2^103: half of the last place, cut
  CHECK(sum(1, {0x1p100f, 0x1p100f, -0x1p100f, 0x1p100f}) == 0);
}

TEST_CASE("products: infinities and NaN") {
  CHECK(sum(infinite, {1, 1}) == infinite);
  CHECK(sum(0, {-infinite, 2}) == -infinite);
  for (float const x : {sum(infinite, {-infinite, 1}), sum(0, {infinite, 0}), sum(none, {1, 1}),
                        sum(0, {-none, 1}), sum(1, {infinite, 1, infinite, -1})})
    CHECK(bits(x) == 0x7fffffffu);
}

TEST_CASE("products: earlier GPUs keep one place less and add halves in turn") {
  auto const ampere = tensor_core::generation_of(8), hopper = tensor_core::generation_of(9);
  float const a[16]{0x1p-12f, 0x1p-12f, 0x1p-12f, 0x1p-12f},
      b[16]{0x1p-13f, 0x1p-13f, 0x1p-13f, 0x1p-13f};
  CHECK(tensor_core::element(hopper, 1, a, b, 16, 2, bf16) == 1 + 0x1p-23f);
  CHECK(tensor_core::element(ampere, 1, a, b, 16, 2, bf16) == 1);
  float const first[16]{1, 0, 0, 0, 0, 0, 0, 0, -1},
      ones[16]{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  CHECK(tensor_core::element(hopper, 0x1p-25f, first, ones, 16, 2, bf16) == 0x1p-25f);
  CHECK(tensor_core::element(ampere, 0x1p-25f, first, ones, 16, 2, bf16) ==
        0);  // cut when the first half was added
}

TEMPLATE_TEST_CASE_SIG("products: two forms of the model", "",
                       ((int Depth, int Least, bool Short), Depth, Least, Short), (8, bf16, false),
                       (16, bf16, true), (16, fp16, true)) {
  std::mt19937 engine(7);
  auto const random = [&] { return std::uint32_t(engine()); };
  auto const number = [&](unsigned spread) {
    std::uint32_t const e = 127 - spread / 2 + random() % spread;
    if constexpr (Least == fp16)
      return ptx::float_of_half(std::uint16_t(random() % 0x7c00 | (random() & 0x8000)));
    std::uint32_t const x = (random() & 0x80000000u) | e << 23 | (random() & 0x7fffffu);
    return std::bit_cast<float>(x & (Short ? 0xffff0000u : 0xffffe000u));
  };
  for (int turn = 0; turn < 200; ++turn) {
    unsigned const spread = turn % 4 == 0 ? 4 : turn % 4 == 1 ? 20 : turn % 4 == 2 ? 60 : 250;
    float a[16][Depth], b[Depth][8], c[16][8], found[16][8];
    for (auto& row : a)
      for (float& x : row) x = random() % 20 == 0 ? 0.0f : number(spread);
    for (auto& row : b)
      for (float& x : row) x = number(spread);
    for (auto& row : c)
      for (float& x : row)
        x = random() % 10 == 0
                ? 0.0f
                : std::ldexp(float(int(random())), int(random() % spread) - int(spread / 2) - 31);
    std::memcpy(found, c, sizeof c);
    ptx::add_product<Depth, Least>(found, a, b);
    int wrong = 0;
    for (int m = 0; m < 16; ++m)
      for (int n = 0; n < 8; ++n) {
        float column[Depth];
        for (int k = 0; k < Depth; ++k) column[k] = b[k][n];
        float const expected = tensor_core::add_products(c[m][n], a[m], column, Depth, Least, 25);
        wrong += bits(expected) != bits(found[m][n]) && !(expected == 0 && found[m][n] == 0) &&
                 !(std::isnan(expected) && std::isnan(found[m][n]));
      }
    CHECK(wrong == 0);
  }
}
