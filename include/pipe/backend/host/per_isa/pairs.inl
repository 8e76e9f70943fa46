// SPDX-License-Identifier: BSL-1.0
//
// Products of tiles of bfloat16 numbers by VDPBF16PS of AVX-512-BF16, and their emulation: see
// backend/host/sliced_products.hpp. The instruction is written as assembly, so no compiler option
// is needed.

#if defined(__x86_64__)
/// sum + the products of pairs: of odd terms first, then of even ones, each rounded once.
///
/// needs: Emulated: subnormal operands and results are zeros
template <bool Emulated>
[[gnu::always_inline]] inline vec<float> add_pairs(typename vector_of<bf16>::words a,
                                                   typename vector_of<bf16>::words b,
                                                   vec<float> sum) {
  if constexpr (Emulated) {
    sum = fused((vec<float>)(a & 0xFFFF0000u), (vec<float>)(b & 0xFFFF0000u), sum);
    return fused((vec<float>)(a << 16), (vec<float>)(b << 16), sum);
  } else {
    asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(b), "v"(a));
    return sum;
  }
}

/// The sums of Rows rows and Vectors vectors of columns of a block, which a, b and sums begin at.
template <bool Emulated, int Rows, int Vectors>
[[gnu::always_inline]] inline void add_rows_of_pairs(sliced_block const& of, std::uint16_t const* a,
                                                     std::uint16_t const* b, float* sums) {
  constexpr int Lanes = lanes<float>, in_tile = int(tile_side) / Lanes;
  using words = typename vector_of<bf16>::words;
  typedef words memory __attribute__((aligned(2), may_alias));
  vec<float> sum[Rows][Vectors];
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Vectors; ++c)
      sum[r][c] = of.begins ? vec<float>{} : load(sums + r * of.stride + c * Lanes);
  for (extent p = 0; p < of.steps; ++p, a += tile_elements - tile_depth)
    for (extent q = 0; q < tile_side; ++q, a += 2, b += tile_depth) {
      words right[Vectors];
      for (int c = 0; c < Vectors; ++c)
        right[c] =
            *reinterpret_cast<memory const*>(b + c / in_tile * of.pitch + c % in_tile * 2 * Lanes);
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        std::uint32_t both;
        std::memcpy(&both, a + r * tile_depth, sizeof both);
        words const left = both - words{};
#pragma GCC unroll 4
        for (int c = 0; c < Vectors; ++c)
          sum[r][c] = add_pairs<Emulated>(left, right[c], sum[r][c]);
      }
    }
  for (int r = 0; r < Rows; ++r)
    for (int c = 0; c < Vectors; ++c) save(sums + r * of.stride + c * Lanes, sum[r][c]);
}

/// The sums of a block, Tiles tiles of columns at a time.
template <bool Emulated, int Rows, int Tiles>
void multiply_rows_of_pairs(sliced_block const& of) {
  constexpr int Vectors = Tiles * int(tile_side) / lanes<float>;
  for (int wide = 0; wide < of.wide; wide += Tiles)
    for (extent r = 0; r < of.high * tile_side; r += Rows)
      add_rows_of_pairs<Emulated, Rows, Vectors>(
          of, of.a + r / tile_side * of.pitch + r % tile_side * tile_depth, of.b + wide * of.pitch,
          of.sums + r * of.stride + wide * tile_side);
}
#endif

/// The same one element after the other, without a fused multiply-add of the processor.
inline void emulate_elements_of_pairs(sliced_block const& of) {
  for (extent r = 0; r < of.high * tile_side; ++r)
    for (extent c = 0; c < of.wide * tile_side; ++c) {
      float& sum = of.sums[r * of.stride + c];
      if (of.begins) sum = 0;
      std::uint16_t const *left = of.a + r / tile_side * of.pitch + r % tile_side * tile_depth,
                          *right = of.b + c / tile_side * of.pitch + c % tile_side * 2;
      for (extent p = 0; p < of.steps; ++p, left += tile_elements - tile_depth)
        for (extent q = 0; q < tile_side; ++q, left += 2, right += tile_depth)
          for (int odd = 1; odd >= 0; --odd)
            sum = amx_multiply_add(detail::float_from_bf16(left[odd]),
                                   detail::float_from_bf16(right[odd]), sum);
    }
}

/// The emulation of multiply_pairs.
///
/// law: the bits of VDPBF16PS, but for those of a NaN
template <class T>
[[gnu::noinline]] void emulate_pairs(sliced_block const& of) {
#if defined(__x86_64__)
  if constexpr (this_isa::fuses)
    multiply_rows_of_pairs<true, 4, 1>(of);
  else
#endif
    emulate_elements_of_pairs(of);
}

/// sums (+)= A B for a block of tiles, by AVX-512-BF16.
///
/// shape: A (high * 16, steps * 32), B (steps * 32, wide * 16) -> sums (high * 16, wide * 16)
/// law:   an element is one chain of multiply-adds: for each pair of terms, ascending, first the
/// odd
///        one, then the even one; all round to nearest, ties to even, subnormal operands and
///        results are zeros
/// needs: the vectors of AVX-512, and a processor that has the instruction
/// cost:  16 sums of 8 rows and 32 columns are in registers; for each pair of terms 16
/// instructions,
///        8 loads of a pair of A and 2 of a row of pairs of B
template <class T>
[[gnu::noinline]] void multiply_pairs([[maybe_unused]] sliced_block const& of) {
#if defined(__x86_64__)
  if constexpr (this_isa::vector_bytes == 64) {
    if (of.wide == 2)
      multiply_rows_of_pairs<false, 8, 2>(of);
    else
      multiply_rows_of_pairs<false, 8, 1>(of);
  }
#endif
}
