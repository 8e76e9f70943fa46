// SPDX-License-Identifier: BSL-1.0
//
// Transposition of squares in registers, for the loops of transpose.hpp.

/// The lanes of two rows after an exchange: lanes with bit `Distance` of the lower row change
/// places with lanes without it of the upper row.
template <int Distance, int Lanes, bool Upper>
struct exchange {
  /// The lane from which lane `lane` of the upper or the lower row comes: lanes of the upper row
  /// are counted from `Lanes` on.
  static constexpr int at(int lane) {
    if (Upper) return (lane & Distance) != 0 ? lane + Lanes : lane + Distance;
    return (lane & Distance) != 0 ? lane - Distance + Lanes : lane;
  }
};

// nvcc's front end loses a parameter pack inside this builtin, so the lanes are written out.
template <class T, int Distance, bool Upper>
[[gnu::always_inline]] inline vec<T> exchanged(vec<T> a, vec<T> b) {
  using from = exchange<Distance, lanes<T>, Upper>;
  if constexpr (lanes<T> == 2) return __builtin_shufflevector(a, b, from::at(0), from::at(1));
  if constexpr (lanes<T> == 4)
    return __builtin_shufflevector(a, b, from::at(0), from::at(1), from::at(2), from::at(3));
  if constexpr (lanes<T> == 8)
    return __builtin_shufflevector(a, b, from::at(0), from::at(1), from::at(2), from::at(3),
                                   from::at(4), from::at(5), from::at(6), from::at(7));
  if constexpr (lanes<T> == 16)
    return __builtin_shufflevector(a, b, from::at(0), from::at(1), from::at(2), from::at(3),
                                   from::at(4), from::at(5), from::at(6), from::at(7), from::at(8),
                                   from::at(9), from::at(10), from::at(11), from::at(12),
                                   from::at(13), from::at(14), from::at(15));
}

template <int Distance, class T>
[[gnu::always_inline]] inline void exchange_rows(vec<T> (&row)[lanes<T>]) {
  if constexpr (Distance < lanes<T>) {
#pragma GCC unroll 16
    for (int r = 0; r < lanes<T>; ++r) {
      if ((r & Distance) != 0) continue;
      vec<T> const low = row[r], high = row[r + Distance];
      row[r] = exchanged<T, Distance, false>(low, high);
      row[r + Distance] = exchanged<T, Distance, true>(low, high);
    }
    exchange_rows<2 * Distance, T>(row);
  }
}

/// The transpose of a square in registers: log2(lanes) rounds, in each of which rows r and r +
/// Distance exchange lanes; see exchange.
///
/// shape: in (lanes, lanes), row stride in_stride -> out (lanes, lanes), row stride out_stride
/// cost:  lanes * log2(lanes) shuffles for lanes loads and lanes stores
template <class T, class To = T>
void transpose_square(T const* in, extent in_stride, To* out, extent out_stride) {
  vec<T> row[lanes<T>];
#pragma GCC unroll 16
  for (int r = 0; r < lanes<T>; ++r) row[r] = load(in + r * in_stride);
  exchange_rows<1, T>(row);
#pragma GCC unroll 16
  for (int r = 0; r < lanes<T>; ++r) save(out + r * out_stride, row[r]);
}

/// The transpose of a matrix: out[c * out_stride + r] = in[r * in_stride + c], converted to To.
///
/// shape: in (rows, columns), row stride in_stride -> out (columns, rows), row stride out_stride
template <class T, class To = T>
void transpose(T const* in, extent rows, extent columns, extent in_stride, To* out,
               extent out_stride) {
  transpose_squares<T, To>(&transpose_square<T, To>, lanes<T>, in, rows, columns, in_stride, out,
                           out_stride);
}

/// out[c * rows + r] = in[r * columns + c], both dense.
template <class T>
void transpose(T const* in, extent rows, extent columns, T* out) {
  transpose(in, rows, columns, columns, out, rows);
}
