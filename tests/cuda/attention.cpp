// SPDX-License-Identifier: BSL-1.0
//
// The CUDA kernel bodies of attention and its gradient on floats, at odd sizes, with every feature.
#include "cuda/attention_laws.hpp"

using namespace attention_laws;

TEST_CASE("attention on CUDA agrees with its definition", "[cuda]") {
  check<float, sizes{1, 1, 1, 1, 1, 1}>();
  check<float, sizes{2, 5, 5, 3, 3, 3}>();
  check<float, not_causal(sizes{2, 33, 33, 2, 1, 16})>();
  check<float, sizes{1, 150, 150, 2, 1, 24}>();
  check<float, sizes{1, 130, 130, 1, 1, 64}>();
  check<float, not_causal(sizes{1, 70, 70, 1, 1, 96})>();
  check<float, sizes{1, 70, 70, 2, 2, 128}>();
}
TEST_CASE("attention on CUDA turns queries and keys", "[cuda]") {
  check<float, turned(sizes{2, 33, 33, 4, 2, 6})>();
  check<float, turned(not_causal(sizes{1, 70, 70, 2, 1, 32}))>();
}
TEST_CASE("attention on CUDA to other values, of other lengths", "[cuda]") {
  check<float, kv_apart(sizes{2, 35, 140, 3, 1, 5})>();
  check<float, kv_apart(not_causal(sizes{2, 100, 20, 4, 2, 8}))>();
  check<float, kv_apart(sizes{1, 3, 70, 1, 1, 32})>();
}
TEST_CASE("queries that see no key give 0 on CUDA", "[cuda]") {
  check<float, kv_apart(sizes{2, 70, 20, 2, 1, 8})>();
  check<float, padded(3, kv_apart(sizes{2, 40, 35, 1, 1, 16}))>();
}
TEST_CASE("nobody attends to padding on CUDA", "[cuda]") {
  check<float, padded(3, turned(sizes{3, 9, 9, 2, 1, 6}))>();
  check<float, padded(21, not_causal(sizes{3, 100, 100, 1, 1, 16}))>();
  check<float, padded(41, kv_apart(sizes{2, 20, 90, 2, 2, 8}))>();
}
TEST_CASE("attention on CUDA shapes its scores and hides what a mask hides", "[cuda]") {
  check<float, with({.window = 5}, sizes{2, 40, 40, 2, 1, 6})>();
  check<float, with({.window = 40}, sizes{1, 150, 150, 1, 1, 24})>();
  check<float, padded(2, with({.prefix = 70}, sizes{2, 150, 150, 2, 1, 8}))>();
  check<float, with({.has_alibi = true}, not_causal(sizes{1, 70, 70, 4, 2, 16}))>();
  check<float, turned(with({.cap = 0.5f}, sizes{1, 70, 70, 2, 2, 16}))>();
  check<float, with({.is_masked = true}, sizes{2, 90, 90, 1, 1, 5})>();
  check<float, padded(9, turned(with({.window = 50, .cap = 1, .has_alibi = true, .is_masked = true},
                                     sizes{2, 90, 90, 4, 2, 16})))>();
  check<float, kv_apart(with({.window = 30, .has_alibi = true}, sizes{1, 35, 140, 2, 1, 8}))>();
  check<float, padded(5, kv_apart(not_causal(
                             with({.cap = 2, .is_masked = true}, sizes{2, 20, 90, 2, 1, 8}))))>();
}
TEST_CASE("attention on CUDA: huge scores stay finite, NaN stays in its row", "[cuda]") {
  run<float, kv_apart(sizes{1, 20, 20, 1, 1, 4})> at;
  for (float& x : at.q.items) x *= 1e4f;
  at.launch<0>();
  for (float y : at.y.items) CHECK(std::isfinite(y));
  at.q.items[5 * 4] = std::nanf("");
  at.launch<0>();
  for (std::size_t i = 0; i < 80; ++i) CHECK(std::isnan(at.y.items[i]) == (i / 4 == 5));
}
