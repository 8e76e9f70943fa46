// SPDX-License-Identifier: BSL-1.0
//
// Tensor cores: a warp multiplies two small matrices whose elements are spread over its threads.
// c[16, 8] += a[16, K] b[K, 8], where K is 8 for tf32 and 16 for bf16 and fp16, and c is fp32.
// Which thread has which element is defined by the PTX ISA for mma.m16n8k8 and mma.m16n8k16; the
// functions below are this definition for loads, for stores and for the instruction on the CPU.
#pragma once

#include <cstdint>

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/mma_formats.hpp>

namespace pp::cuda {

/// Extents and registers per thread of one tensor core instruction on operands of format F.
template <operand_format F>
struct tile {
  static constexpr int rows = 16, columns = 8, inner = F == operand_format::tf32 ? 8 : 16;
  static constexpr int per_register = inner / 8;
  static constexpr int a_registers = 4, b_registers = 2, sums = 4;
};

/// An element of a fragment: of a [row, k], of b [k, column], of c [row, column].
struct tile_place {
  int row, column;
};

/// The element of a, or b, in half `half` of register `i` of thread `lane` of the warp.
template <operand_format F>
PIPE_HD PIPE_INLINE tile_place place_in_a(int lane, int i, int half = 0) {
  constexpr int each = tile<F>::per_register;
  return {lane / 4 + 8 * (i % 2), lane % 4 * each + half + 4 * each * (i / 2)};
}
template <operand_format F>
PIPE_HD PIPE_INLINE tile_place place_in_b(int lane, int i, int half = 0) {
  constexpr int each = tile<F>::per_register;
  return {lane % 4 * each + half + 4 * each * i, lane / 4};
}
/// The element of c in sum `i` of a thread, for all formats. Sums 0 and 1 are neighbours in a row,
/// and so are sums 2 and 3.
PIPE_HD PIPE_INLINE tile_place place_in_c(int lane, int i) {
  return {lane / 4 + 8 * (i / 2), lane % 4 * 2 + i % 2};
}

/// The registers of one thread.
struct tile_operands {
  float* c;           ///< 4
  unsigned const* a;  ///< 4
  unsigned const* b;  ///< 2
};

/// The instruction on the CPU, on the registers of a warp's threads: warp[warp_size].
template <operand_format F>
PIPE_HD void multiply_tile(tile_operands const* warp) {
  using shape = tile<F>;
  float a[shape::rows][shape::inner], b[shape::inner][shape::columns];
  for (int lane = 0; lane < warp_size; ++lane)
    for (int half = 0; half < shape::per_register; ++half) {
      for (int i = 0; i < shape::a_registers; ++i) {
        tile_place const p = place_in_a<F>(lane, i, half);
        a[p.row][p.column] = operand_value<F>(warp[lane].a[i], half);
      }
      for (int i = 0; i < shape::b_registers; ++i) {
        tile_place const p = place_in_b<F>(lane, i, half);
        b[p.row][p.column] = operand_value<F>(warp[lane].b[i], half);
      }
    }
  for (int lane = 0; lane < warp_size; ++lane)
    for (int i = 0; i < shape::sums; ++i) {
      tile_place const p = place_in_c(lane, i);
      float sum = 0;
      for (int k = 0; k < shape::inner; ++k) sum += a[p.row][k] * b[k][p.column];
      warp[lane].c[i] += sum;
    }
}

/// c += a b in every warp, by one instruction. access(state): the thread's registers.
///
/// shape: a (16, K), b (K, 8) -> c (16, 8), K = tile<F>::inner, spread over the warp by place_in_a,
///        place_in_b and place_in_c
/// needs: tf32 operands are floats rounded by to_tf32; called by all threads of a warp
template <operand_format F, class Block, class Access>
PIPE_HD PIPE_INLINE void multiply_add(Block& block, Access access) {
#ifdef __CUDA_ARCH__
  tile_operands const t = access(block.mine());
  if constexpr (F == operand_format::tf32)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(t.c[0]), "+f"(t.c[1]), "+f"(t.c[2]), "+f"(t.c[3])
        : "r"(t.a[0]), "r"(t.a[1]), "r"(t.a[2]), "r"(t.a[3]), "r"(t.b[0]), "r"(t.b[1]));
  else if constexpr (F == operand_format::bf16)
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};"
        : "+f"(t.c[0]), "+f"(t.c[1]), "+f"(t.c[2]), "+f"(t.c[3])
        : "r"(t.a[0]), "r"(t.a[1]), "r"(t.a[2]), "r"(t.a[3]), "r"(t.b[0]), "r"(t.b[1]));
  else
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
        "{%0,%1,%2,%3};"
        : "+f"(t.c[0]), "+f"(t.c[1]), "+f"(t.c[2]), "+f"(t.c[3])
        : "r"(t.a[0]), "r"(t.a[1]), "r"(t.a[2]), "r"(t.a[3]), "r"(t.b[0]), "r"(t.b[1]));
#else
  block.together([&](int first) {
    tile_operands warp[warp_size];
    for (int lane = 0; lane < warp_size; ++lane) warp[lane] = access(block.of(first + lane));
    multiply_tile<F>(warp);
  });
#endif
}

}  // namespace pp::cuda
