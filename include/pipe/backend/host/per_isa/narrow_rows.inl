// SPDX-License-Identifier: BSL-1.0
//
// The kernels of matrices of weights in fewer bits than a float (narrow_matrix.hpp).

/// The weights of the outputs [c, c + lanes) of a row of a panel, as floats.
///
/// needs: c / narrow_words is that of all of them
template <decoder_weights Type>
[[gnu::always_inline]] inline vec<float> load_weights(unsigned char const* row, extent c,
                                                      [[maybe_unused]] vec<float> scale) {
  constexpr weight_format format{Type};
  vec<int> const words = load(reinterpret_cast<int const*>(row + format.place_of_word(c)));
  int const above = 32 - format.bits() * (format.field_of(c) + 1);  // bits of the next fields
  if constexpr (Type == decoder_weights::bf16)
    return (vec<float>)(above == 0 ? words & int(0xFFFF0000u) : words << 16);
  else
    return __builtin_convertvector((words << above) >> (32 - format.bits()), vec<float>) * scale;
}

/// The function of narrow_kernels::multiply.
///
/// shape: x (inputs), w (inputs, outputs) -> y (outputs)
/// law:   an element is one chain of fused multiply-adds over ascending inputs, as in a tile: the
///        bits of contract() with the widened matrix
/// cost:  reads the panels in the order of memory, from memory once
template <decoder_weights Type>
void multiply_narrow(narrow_matrix const& w, part_range own, float const* x, float* y) {
  constexpr int Lanes = lanes<float>, Vectors = narrow_columns / narrow_words;
  constexpr extent row = weight_format{Type}.row_bytes();
  // Rows are fetched ahead: otherwise memory waits while weights are unpacked.
  constexpr extent ahead = 64 * row;
  extent const group = w.group(), inputs = w.inputs, scales = w.format.scale_bytes();
  for (extent j = own.begin; j < own.end; j += narrow_columns)
    // The sums of a narrower vector than narrow_words take several passes, all but the first in L2.
    for (extent first = 0; first < narrow_words; first += Lanes) {
      unsigned char const* from = w.row(0, j) - scales;
      vec<float> sum[Vectors], scale[Vectors];
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) sum[v] = scale[v] = vec<float>{};
      for (extent p = 0; p < inputs;) {
        if constexpr (Type == decoder_weights::int8) {
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v)
            scale[v] = load(reinterpret_cast<float const*>(from) + v * narrow_words + first);
        }
        from += scales;
        extent const end = p + group < inputs ? p + group : inputs;
        for (; p < end; ++p, from += row) {
          for (extent line = 0; line < row; line += 64) __builtin_prefetch(from + ahead + line);
          vec<float> const left = all_lanes(x[p]);
          unsigned char const* const words = from + first * extent(sizeof(int));
#pragma GCC unroll 4
          for (int v = 0; v < Vectors; ++v)
            sum[v] =
                multiply_add(left, load_weights<Type>(words, v * narrow_words, scale[v]), sum[v]);
        }
      }
#pragma GCC unroll 4
      for (int v = 0; v < Vectors; ++v) {
        extent const at = j + v * narrow_words + first, left = own.end - at;
        if (left >= Lanes) {
          save(y + at, sum[v]);
        } else if (left > 0) {
          vec<float> const rest = sum[v];
          std::memcpy(y + at, &rest, sizeof(float) * std::size_t(left));
        }
      }
    }
}

/// The function of narrow_kernels::widen.
///
/// shape: w (inputs, outputs) -> to (depth, columns)
template <decoder_weights Type>
void widen_narrow(narrow_matrix const& w, extent p, extent depth, extent j, extent columns,
                  float* to) {
  constexpr extent Lanes = lanes<float>, row = weight_format{Type}.row_bytes();
  extent const end = p + depth;
  while (p < end) {
    extent const of_group = (p / w.group() + 1) * w.group(), stop = of_group < end ? of_group : end;
    for (extent v = 0; v < columns; v += Lanes) {
      extent const c = (j + v) % narrow_columns;
      vec<float> scale{};
      if constexpr (Type == decoder_weights::int8)
        scale = load(reinterpret_cast<float const*>(w.scales(p, j + v)) + c);
      unsigned char const* from = w.row(p, j + v);
      float* at = to + v;
      for (extent i = p; i < stop; ++i, from += row, at += columns)
        save(at, load_weights<Type>(from, c, scale));
    }
    to += (stop - p) * columns;
    p = stop;
  }
}

/// The table of a type.
template <decoder_weights Type>
inline constexpr narrow_kernels<float> narrow_kernels_of{&multiply_narrow<Type>,
                                                         &widen_narrow<Type>};
