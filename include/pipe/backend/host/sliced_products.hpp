// SPDX-License-Identifier: BSL-1.0
//
// Products of factors that are sums of bfloat16 numbers, their slices: one for BF16, two for TF32,
// three, which hold the 24 bits of a float, for SplitFP32. They are defined by AMX's instruction
// TDPBF16PS on tiles or, for one slice, by VDPBF16PS of AVX-512-BF16 on rows of the same tiles; the
// emulation of a processor without the instruction has its bits. Here are the layout of tiles in
// memory and the arithmetic of one element.
#pragma once

#include <cstdint>

#include <pipe/backend/host/isa.hpp>
#include <pipe/backend/host/tiles.hpp>
#include <pipe/backend/product_shape.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/dtype.hpp>
#include <pipe/base/libm.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// What multiplies factors of 16 bits. vectors: they are widened, for register tiles of floats.
/// avx512_bf16: VDPBF16PS, for factors of one slice.
enum class product_unit : unsigned char {
  vectors,
  emulated_avx512_bf16,
  avx512_bf16,
  emulated_amx,
  amx
};

/// Whether a unit multiplies as VDPBF16PS does.
constexpr bool multiplies_pairs(product_unit unit) {
  return unit == product_unit::avx512_bf16 || unit == product_unit::emulated_avx512_bf16;
}

/// The slices of a factor of precision P; 0 where factors are not of 16 bits.
template <class P>
inline constexpr int slices_of = P::product == dtype::bf16     ? 1
                                 : P::product == dtype::tf32   ? 2
                                 : P::product == dtype::bf16x3 ? 3
                                                               : 0;

/// A tile: 16 x 16 sums, 16 x 32 elements of A, or 32 x 16 of B, which lie as 16 rows of pairs
/// (element p, element p + 1), p even. A tile of a factor is 1 KiB.
inline constexpr extent tile_side = 16, tile_depth = 32, tile_elements = tile_side * tile_depth;
/// Columns of B that are made into tiles together: whole tiles of every instruction set, since
/// epilogues are compiled for their columns.
inline constexpr extent panel_columns = 96;
/// Rows and columns of sums that are computed together: 2 x 2 tiles.
inline constexpr extent block_side = 2 * tile_side;

/// A block of sums, and the tiles of its factors: tile t of A has slice s of step p at a + t *
/// pitch + (p * slices + s) * tile_elements; so has B.
struct sliced_block {
  int slices = 1;
  extent steps = 0;        ///< tiles of a factor along the shared dimension
  int high = 1, wide = 1;  ///< tiles of sums: 1 or 2
  std::uint16_t const* a = nullptr;
  std::uint16_t const* b = nullptr;
  extent pitch = 0;
  float* sums = nullptr;
  extent stride = 0;
  bool begins = true;  ///< sums start at zero, not with those in memory
};

/// The products of slices of A and of B, in their order: the smallest terms first. Terms below the
/// last slice are left out.
struct slice_pair {
  int left, right;
};
constexpr int slice_pairs(int slices) { return slices * (slices + 1) / 2; }
constexpr slice_pair slice_pair_at(int slices, int index) {
  constexpr slice_pair all[3][6]{
      {{0, 0}}, {{1, 0}, {0, 1}, {0, 0}}, {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}}};
  return all[slices - 1][index];
}

/// x, or a zero of its sign if x is subnormal.
inline float without_subnormal(float x) {
  std::uint32_t const bits = __builtin_bit_cast(std::uint32_t, x);
  return (bits & 0x7F800000) == 0 ? __builtin_bit_cast(float, bits & 0x80000000) : x;
}
/// a + b rounded once, to nearest, ties to even; a subnormal result becomes a zero. `a` is exact in
/// double. A sum in double is rounded to odd, so that rounding it further is rounding once.
inline float flushed_sum(double a, float b) {
  double const c = double(without_subnormal(b));
  double sum = a + c;
  if (!libm::isfinite(sum)) return float(sum);
  double const other = sum - a, error = (a - (sum - other)) + (c - other);
  std::uint64_t const bits = __builtin_bit_cast(std::uint64_t, sum);
  if (error != 0 && (bits & 1) == 0)
    sum = __builtin_bit_cast(double, (error > 0) == (sum > 0) ? bits + 1 : bits - 1);
  // Whether a result is subnormal is decided after rounding to 24 bits: from 2^-126 - 2^-151 on, it
  // would become 2^-126.
  if (libm::fabs(sum) < 0x1p-126 - 0x1p-151) return __builtin_signbit(sum) != 0 ? -0.0f : 0.0f;
  return float(sum);
}
/// c + a b of TDPBF16PS and VDPBF16PS: rounded once, subnormal operands and results are zeros.
inline float amx_multiply_add(float a, float b, float c) {
  return flushed_sum(double(without_subnormal(a)) * double(without_subnormal(b)), c);
}
inline float amx_add(float a, float b) { return flushed_sum(double(without_subnormal(a)), b); }

/// The blocking of a product of slices. The bits of an element are those of blocks of tile_depth
/// terms from the first one on, so all but the last block of the shared dimension are whole tiles.
struct sliced_blocking {
  extent rows, columns, depth;
};
constexpr extent whole_tiles(extent n, extent side) { return (n + side - 1) / side * side; }
/// made_depth: the most columns of blocks of A that are made, whole tiles; 0: A is in memory.
constexpr sliced_blocking blocking_of_slices(extent m, extent n, extent k, int slices,
                                             extent made_depth = 0) {
  extent const rows = 256, columns = 8 * panel_columns,
               deepest = made_depth > 0 ? made_depth
                         : slices == 1  ? 512
                                        : 256;
  extent const blocks = k < 1 ? 1 : (k + deepest - 1) / deepest;
  return {m < rows ? m : rows, n < columns ? n : columns,
          whole_tiles((k + blocks - 1) / blocks, tile_depth)};
}

/// Where a product of slices has its blocks, in bytes from the start of its workspace.
struct sliced_workspace {
  long left = 0, right = 0, finished = 0, partial = 0, panel = 0, again = 0, all = 0;
  constexpr sliced_workspace(extent k, sliced_blocking const& cut, int slices) {
    auto const take = [this](long bytes) {
      long const at = all;
      all += detail::align_up(bytes);
      return at;
    };
    extent const depth = whole_tiles(cut.depth, tile_depth),
                 high = whole_tiles(cut.rows, block_side),
                 wide = whole_tiles(cut.columns, panel_columns);
    left = take(high * depth * slices * 2);
    right = take(panel_columns * depth * slices * 2);
    finished = take(block_side * panel_columns * 4);
    partial = take(cut.depth < k ? high * wide * 4 : 0);
    panel = take(depth * panel_columns * 4);
    // Sums that are computed again, in fp32.
    again = take(slices > 1 ? block_side * panel_columns * 4 : 0);
  }
};

}  // namespace pp::host
PIPE_OPTIMIZED_END
