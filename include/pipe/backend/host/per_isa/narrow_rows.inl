// SPDX-License-Identifier: BSL-1.0
//
// The kernels of matrices of weights in fewer bits than a float (narrow_matrix.hpp).

/// As many 8-bit integers as a vector has lanes, and the same as wide as floats.
struct int8_steps {
  typedef signed char bytes __attribute__((vector_size(this_isa::vector_bytes / 4)));
  typedef int words __attribute__((vector_size(this_isa::vector_bytes)));
};

/// The weights of as many outputs as a vector has lanes, as floats.
template <decoder_weights Type>
[[gnu::always_inline]] inline vec<float> load_weights(unsigned char const* from,
                                                      [[maybe_unused]] vec<float> scale) {
  if constexpr (Type == decoder_weights::bf16) {
    return load(reinterpret_cast<bf16 const*>(from));
  } else {
    int8_steps::bytes steps;
    std::memcpy(&steps, from, sizeof steps);
    return __builtin_convertvector(__builtin_convertvector(steps, int8_steps::words), vec<float>) *
           scale;
  }
}

/// The function of narrow_kernels::multiply.
///
/// shape: x (inputs), w (inputs, outputs) -> y (outputs)
/// law:   an element is one chain of fused multiply-adds over ascending inputs, as in a tile: the
///        bits of contract() with the widened matrix
/// cost:  reads the panels once, in the order of memory
template <decoder_weights Type>
void multiply_narrow(narrow_matrix const& w, part_range own, float const* x, float* y) {
  constexpr int Lanes = lanes<float>, Vectors = 4, columns = Vectors * Lanes;
  static_assert(narrow_columns % columns == 0);
  constexpr extent number = Type == decoder_weights::bf16 ? 2 : 1, row = number * narrow_columns;
  for (extent j = own.begin; j < own.end; j += columns) {
    extent const c = j % narrow_columns;
    vec<float> sum[Vectors]{}, scale[Vectors]{};
    for (extent p = 0; p < w.inputs;) {
      extent const end = p + w.group() < w.inputs ? p + w.group() : w.inputs;
      if constexpr (Type == decoder_weights::int8) {
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v)
          scale[v] = load(reinterpret_cast<float const*>(w.scales(p, j)) + c + v * Lanes);
      }
      unsigned char const* from = w.row(p, j) + number * c;
      for (; p < end; ++p, from += row) {
        vec<float> const left = all_lanes(x[p]);
#pragma GCC unroll 4
        for (int v = 0; v < Vectors; ++v)
          sum[v] =
              multiply_add(left, load_weights<Type>(from + number * v * Lanes, scale[v]), sum[v]);
      }
    }
    extent const left = own.end - j;
    if (left >= columns) {
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) save(y + j + v * Lanes, sum[v]);
    } else {
      std::memcpy(y + j, sum, sizeof(float) * std::size_t(left));
    }
  }
}

/// The function of narrow_kernels::widen.
///
/// shape: w (inputs, outputs) -> to (depth, columns)
template <decoder_weights Type>
void widen_narrow(narrow_matrix const& w, extent p, extent depth, extent j, extent columns,
                  float* to) {
  constexpr extent Lanes = lanes<float>;
  constexpr extent number = Type == decoder_weights::bf16 ? 2 : 1, row = number * narrow_columns;
  extent const end = p + depth;
  while (p < end) {
    extent const of_group = (p / w.group() + 1) * w.group(), stop = of_group < end ? of_group : end;
    for (extent v = 0; v < columns; v += Lanes) {
      extent const c = (j + v) % narrow_columns;
      vec<float> scale{};
      if constexpr (Type == decoder_weights::int8)
        scale = load(reinterpret_cast<float const*>(w.scales(p, j + v)) + c);
      unsigned char const* from = w.row(p, j + v) + number * c;
      float* at = to + v;
      for (extent i = p; i < stop; ++i, from += row, at += columns)
        save(at, load_weights<Type>(from, scale));
    }
    to += (stop - p) * columns;
    p = stop;
  }
}

/// The table of a type.
template <decoder_weights Type>
inline constexpr narrow_kernels<float> narrow_kernels_of{&multiply_narrow<Type>,
                                                         &widen_narrow<Type>};
