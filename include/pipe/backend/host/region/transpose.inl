// SPDX-License-Identifier: BSL-1.0
//
// Data movement beside the contractions: the transposed copy of a weight, made once per optimizer update so that every
// backward contraction reads its B row-major.

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
///
/// In squares of a cache line's side, so that lines are read and written whole: at large power-of-two strides a line
/// would otherwise be evicted before its next element is touched.
template <class T>
void transpose(T const* in, extent rows, extent columns, extent in_stride, T* out, extent out_stride) {
  constexpr int Lanes = lanes<T>, Side = static_cast<int>(widest_vector_bytes / sizeof(T));
  for (extent line_r = 0; line_r < rows; line_r += Side)
    for (extent line_c = 0; line_c < columns; line_c += Side)
      for (extent c0 = line_c; c0 < columns && c0 < line_c + Side; c0 += Lanes)
        for (extent r0 = line_r; r0 < rows && r0 < line_r + Side; r0 += Lanes) {
          T const* const from = in + r0 * in_stride + c0;
          T* const to = out + c0 * out_stride + r0;
          if (rows - r0 >= Lanes && columns - c0 >= Lanes) {
            transpose_square(from, in_stride, to, out_stride);
          } else {
            for (extent c = 0; c < columns - c0 && c < Lanes; ++c)
              for (extent r = 0; r < rows - r0 && r < Lanes; ++r) to[c * out_stride + r] = from[r * in_stride + c];
          }
        }
}

/// out[c * rows + r] = in[r * columns + c], both dense.
template <class T>
void transpose(T const* in, extent rows, extent columns, T* out) {
  transpose(in, rows, columns, columns, out, rows);
}

}  // namespace pp::host::PIPE_ISA
