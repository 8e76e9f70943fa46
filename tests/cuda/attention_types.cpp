// SPDX-License-Identifier: BSL-1.0
//
// The CUDA kernel bodies of attention and its gradient on 16-bit floats, and with tiles of another
// height.
#include "cuda/attention_laws.hpp"

using namespace attention_laws;

TEST_CASE("the height of a warp's tiles leaves attention's bits as they are", "[cuda]") {
  check_heights<float, turned(sizes{1, 150, 150, 2, 1, 16})>();
  check_heights<float, kv_apart(sizes{2, 100, 110, 2, 1, 24})>();
  check_heights<bf16, kv_apart(not_causal(sizes{1, 70, 70, 1, 1, 64}))>();
  check_heights<float, sizes{1, 70, 70, 1, 1, 64}>();  // tiles of 16 other rows, and of 32
}
TEST_CASE("attention on CUDA in 16 bits", "[cuda]") {
  check<bf16, sizes{1, 70, 70, 2, 1, 64}>(1e-2);
  check<fp16, padded(5, sizes{2, 33, 33, 2, 1, 7})>(2e-3);
  check<bf16, kv_apart(not_causal(sizes{1, 20, 75, 2, 2, 20}))>(1e-2);
  check<fp16, turned(sizes{1, 70, 70, 1, 1, 128})>(2e-3);
}
