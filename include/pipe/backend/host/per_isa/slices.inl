// SPDX-License-Identifier: BSL-1.0
//
// Tiles of slices, and the emulation of the instruction that multiplies them: see
// backend/host/sliced_products.hpp.

/// Slice `Index` of numbers, of which earlier slices have been subtracted, in the upper half of
/// each word: rounded to bfloat16. The third one is exact. Only the first one is sure to keep a
/// NaN.
template <int Index>
[[gnu::always_inline]] inline typename vector_of<bf16>::words upper_halves(vec<float> rest) {
  using words = typename vector_of<bf16>::words;
  words const bits = (words)rest, rounded = bits + (0x7FFFu + (bits >> 16 & 1u));
  if constexpr (Index == 0)
    return ((bits & 0x7FFFFFFFu) > 0x7F800000u ? bits | 0x400000u : rounded) & 0xFFFF0000u;
  else
    return (Index == 1 ? rounded : bits) & 0xFFFF0000u;
}

/// to[s * pitch + i] = slice s of from[i], i < n, from slice Index on: the number rounded to
/// bfloat16, what remains of it rounded, and so on. Differences are exact.
template <int Slices, int Index = 0>
[[gnu::always_inline]] inline void slice_vector(vec<float> rest, std::uint16_t* to, extent pitch) {
  using halves = typename vector_of<bf16>::halves;
  auto const upper = upper_halves<Index>(rest);
  *reinterpret_cast<typename vector_of<bf16>::unaligned*>(to) =
      __builtin_convertvector(upper >> 16, halves);
  if constexpr (Index + 1 < Slices)
    slice_vector<Slices, Index + 1>(rest - (vec<float>)upper, to + pitch, pitch);
}
template <int Slices, class X>
[[gnu::always_inline]] inline void slice_numbers(X const* from, extent n, std::uint16_t* to,
                                                 extent pitch) {
  if constexpr (std::is_same_v<X, bf16>) {
    static_assert(Slices == 1);
    std::memcpy(to, from, std::size_t(n) * sizeof(bf16));
  } else {
    extent i = 0;
    for (; i + lanes<X> <= n; i += lanes<X>) slice_vector<Slices>(load(from + i), to + i, pitch);
    if (i == n) return;
    X last[lanes<X>] = {};
    std::uint16_t slices_of_last[Slices][lanes<X>];
    std::memcpy(last, from + i, std::size_t(n - i) * sizeof(X));
    slice_vector<Slices>(load(last), slices_of_last[0], lanes<X>);
    for (int s = 0; s < Slices; ++s)
      std::memcpy(to + s * pitch + i, slices_of_last[s], std::size_t(n - i) * 2);
  }
}

/// The pairs of two vectors, one slice after the other.
template <int Slices, int Index = 0>
[[gnu::always_inline]] inline void pair_vectors(vec<float> even, vec<float> odd,
                                                std::uint16_t* to) {
  using words = typename vector_of<bf16>::words;
  typedef words memory __attribute__((aligned(2), may_alias));
  words const first = upper_halves<Index>(even), second = upper_halves<Index>(odd);
  *reinterpret_cast<memory*>(to) = first >> 16 | second;
  if constexpr (Index + 1 < Slices)
    pair_vectors<Slices, Index + 1>(even - (vec<float>)first, odd - (vec<float>)second,
                                    to + tile_elements);
}

/// The pairs of as many values as a vector has numbers.
[[gnu::always_inline]] inline void pair_values(bf16 const* even, bf16 const* odd,
                                               std::uint16_t* to) {
  using words = typename vector_of<bf16>::words;
  using values = typename vector_of<bf16>::unaligned;
  typedef words memory __attribute__((aligned(2), may_alias));
  auto const widened = [](bf16 const* from) {
    return __builtin_convertvector(*reinterpret_cast<values const*>(from), words);
  };
  *reinterpret_cast<memory*>(to) = widened(even) | widened(odd) << 16;
}

/// One tile of each slice of a matrix with dense columns: row q has pairs of its rows 2q and 2q +
/// 1. Rows from `depth` on, and columns from `columns` on, are zeros.
///
/// shape: from (depth <= 32, columns <= 16), row stride `stride` -> to (Slices, 16, 16 pairs)
template <int Slices, class X>
void pair_rows(X const* from, extent stride, extent depth, extent columns, std::uint16_t* to) {
  if constexpr (std::is_same_v<X, float> || std::is_same_v<X, bf16>)
    if (columns == tile_side) {
      X const zeros[tile_side]{};
      for (extent q = 0; q < tile_side; ++q, to += tile_depth) {
        X const *const even = 2 * q < depth ? from + 2 * q * stride : zeros,
                       *const odd = 2 * q + 1 < depth ? from + (2 * q + 1) * stride : zeros;
        for (extent c = 0; c < tile_side; c += lanes<float>)
          if constexpr (std::is_same_v<X, bf16>)
            pair_values(even + c, odd + c, to + 2 * c);
          else
            pair_vectors<Slices>(load(even + c), load(odd + c), to + 2 * c);
      }
      return;
    }
  for (extent q = 0; q < tile_side; ++q) {
    std::uint16_t rows[2][Slices * tile_side] = {};
    for (extent r = 0; r < 2; ++r)
      if (2 * q + r < depth)
        slice_numbers<Slices>(from + (2 * q + r) * stride,
                              columns == tile_side ? tile_side : columns, rows[r], tile_side);
    for (int s = 0; s < Slices; ++s) {
      std::uint16_t* const pairs = to + s * tile_elements + q * tile_depth;
      PIPE_INDEPENDENT
      for (extent c = 0; c < tile_side; ++c) {
        pairs[2 * c] = rows[0][s * tile_side + c];
        pairs[2 * c + 1] = rows[1][s * tile_side + c];
      }
    }
  }
}

/// The functions of sliced_kernels: right, tiles of B; left, tiles of A.
template <int Slices, class X>
PIPE_ONE_COPY void slice_right(X const* from, extent stride, extent depth, extent columns,
                               std::uint16_t* to) {
  for (extent j = 0; j < columns; j += tile_side)
    for (extent p = 0; p < depth; p += tile_depth, to += Slices * tile_elements)
      pair_rows<Slices>(from + p * stride + j, stride, depth - p,
                        columns - j < tile_side ? columns - j : tile_side, to);
}
template <int Slices, class X>
PIPE_ONE_COPY void slice_left(strided<X const> from, extent rows, extent depth, std::uint16_t* to) {
  for (extent i = 0; i < rows; i += tile_side) {
    extent const high = rows - i < tile_side ? rows - i : tile_side;
    for (extent p = 0; p < depth; p += tile_depth, to += Slices * tile_elements) {
      extent const wide = depth - p < tile_depth ? depth - p : tile_depth;
      if (from.column != 1) {
        // Pairs of rows of the transpose are columns of pairs.
        alignas(64) std::uint16_t pairs[Slices * tile_elements];
        pair_rows<Slices>(from.from(i, p).data, from.column, wide, high, pairs);
        for (int s = 0; s < Slices; ++s)
          transpose<float>(reinterpret_cast<float const*>(pairs + s * tile_elements), tile_side,
                           tile_side, tile_side, reinterpret_cast<float*>(to + s * tile_elements),
                           tile_side);
        continue;
      }
      if (high < tile_side || wide < tile_depth)
        std::memset(to, 0, Slices * tile_elements * sizeof(std::uint16_t));
      for (extent r = 0; r < high; ++r)
        if (wide == tile_depth)
          slice_numbers<Slices>(from.from(i + r, p).data, tile_depth, to + r * tile_depth,
                                tile_elements);
        else
          slice_numbers<Slices>(from.from(i + r, p).data, wide, to + r * tile_depth, tile_elements);
    }
  }
}

#if defined(__x86_64__)
/// The sums of some rows of a tile of C: see emulate_tiles.
template <int Rows>
[[gnu::always_inline]] inline void emulate_rows(sliced_block const& of, std::uint16_t const* a,
                                                std::uint16_t const* b, float* sums) {
  constexpr int Lanes = lanes<float>, Vectors = int(tile_side) / Lanes;
  using words = typename vector_of<bf16>::words;
  typedef words memory __attribute__((aligned(2), may_alias));
  vec<float> sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Vectors; ++c)
      sum[r][c] = of.begins ? vec<float>{} : load(sums + r * of.stride + c * Lanes);
  for (extent p = 0; p < of.steps; ++p)
    for (int pair = 0; pair < slice_pairs(of.slices); ++pair) {
      slice_pair const at = slice_pair_at(of.slices, pair);
      std::uint16_t const *left = a + (p * of.slices + at.left) * tile_elements,
                          *right = b + (p * of.slices + at.right) * tile_elements;
      vec<float> even[Rows][Vectors] = {}, odd[Rows][Vectors] = {};
      for (extent q = 0; q < tile_side; ++q, left += 2, right += tile_depth) {
#pragma GCC unroll 4
        for (int c = 0; c < Vectors; ++c) {
          words const both_terms = *reinterpret_cast<memory const*>(right + c * 2 * Lanes);
          vec<float> const first = (vec<float>)(both_terms << 16),
                           second = (vec<float>)(both_terms & 0xFFFF0000u);
#pragma GCC unroll 4
          for (int r = 0; r < Rows; ++r) {
            std::uint32_t both;
            std::memcpy(&both, left + r * tile_depth, sizeof both);
            words const of_row = both - words{};
            even[r][c] = fused((vec<float>)(of_row << 16), first, even[r][c]);
            odd[r][c] = fused((vec<float>)(of_row & 0xFFFF0000u), second, odd[r][c]);
          }
        }
      }
      for (int r = 0; r < Rows; ++r)
        for (int c = 0; c < Vectors; ++c) sum[r][c] = sum[r][c] + (even[r][c] + odd[r][c]);
    }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Vectors; ++c) save(sums + r * of.stride + c * Lanes, sum[r][c]);
}
#endif

/// The same one element after the other, without a fused multiply-add of the processor.
template <int Rows>
void emulate_elements(sliced_block const& of, std::uint16_t const* a, std::uint16_t const* b,
                      float* sums) {
  for (int r = 0; r < Rows; ++r)
    for (extent c = 0; c < tile_side; ++c) {
      float& sum = sums[r * of.stride + c];
      if (of.begins) sum = 0;
      for (extent p = 0; p < of.steps; ++p)
        for (int pair = 0; pair < slice_pairs(of.slices); ++pair) {
          slice_pair const at = slice_pair_at(of.slices, pair);
          std::uint16_t const *left =
                                  a + (p * of.slices + at.left) * tile_elements + r * tile_depth,
                              *right = b + (p * of.slices + at.right) * tile_elements + 2 * c;
          float chain[2] = {};
          for (extent q = 0; q < tile_side; ++q)
            for (int odd = 0; odd < 2; ++odd)
              chain[odd] = amx_multiply_add(detail::float_from_bf16(left[2 * q + odd]),
                                            detail::float_from_bf16(right[q * tile_depth + odd]),
                                            chain[odd]);
          sum = amx_add(sum, amx_add(chain[0], chain[1]));
        }
    }
}

/// The emulation of amx::multiply_block, as the manual of TDPBF16PS specifies it: for each pair of
/// tiles, an element's products of even terms are one chain of fused multiply-adds, those of odd
/// terms another; their sum is added to the element. All round to nearest, ties to even; subnormal
/// operands and results are zeros.
///
/// law: the bits of the instruction, but for those of a NaN
template <class T>
[[gnu::noinline]] void emulate_tiles(sliced_block const& of) {
  constexpr int Rows = this_isa::vector_bytes == 64 ? 4 : 2;
  for (int high = 0; high < of.high; ++high)
    for (int wide = 0; wide < of.wide; ++wide)
      for (extent r = 0; r < tile_side; r += Rows) {
        std::uint16_t const *const a = of.a + high * of.pitch + r * tile_depth, *const b =
                                                                                    of.b +
                                                                                    wide * of.pitch;
        T* const sums = of.sums + (high * tile_side + r) * of.stride + wide * tile_side;
#if defined(__x86_64__)
        if constexpr (this_isa::fuses)
          emulate_rows<Rows>(of, a, b, sums);
        else
#endif
          emulate_elements<Rows>(of, a, b, sums);
      }
}
/// Multiplies by an emulation, while subnormal operands and results are zeros.
template <void (*Emulation)(sliced_block const&)>
void emulate(sliced_block const& of) {
#if defined(__x86_64__)
  if constexpr (this_isa::fuses) {
    // All exceptions masked, DAZ and FTZ.
    unsigned const flushing = 0x9FC0;
    unsigned before;
    asm volatile("vstmxcsr %0" : "=m"(before) : : "memory");
    asm volatile("vldmxcsr %0" : : "m"(flushing) : "memory");
    Emulation(of);
    asm volatile("vldmxcsr %0" : : "m"(before) : "memory");
    return;
  }
#endif
  Emulation(of);
}

template <class T, class V, int Slices>
inline constexpr sliced_kernels<T, V> kernels_of_slices{
    Slices,
    &slice_left<Slices, V>,
    &slice_left<Slices, T>,
    &slice_right<Slices, V>,
    &slice_right<Slices, T>,
    &emulate<&emulate_tiles<T>>,
    Slices == 1 && this_isa::vector_bytes == 64 ? &multiply_pairs<T> : nullptr,
    Slices == 1 ? &emulate<&emulate_pairs<T>> : nullptr,
    &contract_sliced<T, V>};
