// SPDX-License-Identifier: BSL-1.0
//
// Squares are transposed in registers; see transpose.hpp.

namespace pp::host::PIPE_ISA {

/// Where the lanes of a row come from when two rows exchange the lanes whose number differs in bit `Step`.
template <int Step, int Lanes, bool Upper>
struct exchanged {
  static constexpr int lane(int i) {
    bool const stays = ((i & Step) != 0) == Upper;
    return stays ? i + (Upper ? Lanes : 0) : Upper ? i + Step : i - Step + Lanes;
  }
};

template <int Step, class T>
[[gnu::always_inline]] inline void exchange_rows(vec<T> (&row)[lanes<T>]) {
  if constexpr (Step < lanes<T>) {
#pragma GCC unroll 16
    for (int r = 0; r < lanes<T>; ++r) {
      if ((r & Step) != 0) continue;
      vec<T> const low = row[r], high = row[r + Step];
      row[r] = shuffled<exchanged<Step, lanes<T>, false>, T>(low, high);
      row[r + Step] = shuffled<exchanged<Step, lanes<T>, true>, T>(low, high);
    }
    exchange_rows<2 * Step, T>(row);
  }
}

/// A square of lanes x lanes elements, in registers.
template <class T>
void transpose_square(T const* in, extent in_stride, T* out, extent out_stride) {
  vec<T> row[lanes<T>];
#pragma GCC unroll 16
  for (int r = 0; r < lanes<T>; ++r) row[r] = load(in + r * in_stride);
  exchange_rows<1, T>(row);
#pragma GCC unroll 16
  for (int r = 0; r < lanes<T>; ++r) save(out + r * out_stride, row[r]);
}

/// out[c * out_stride + r] = in[r * in_stride + c]
template <class T>
void transpose(T const* in, extent rows, extent columns, extent in_stride, T* out, extent out_stride) {
  transpose_squares<T>(&transpose_square<T>, lanes<T>, in, rows, columns, in_stride, out, out_stride);
}

/// out[c * rows + r] = in[r * columns + c], both dense.
template <class T>
void transpose(T const* in, extent rows, extent columns, T* out) {
  transpose(in, rows, columns, columns, out, rows);
}

}  // namespace pp::host::PIPE_ISA
