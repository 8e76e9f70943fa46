// SPDX-License-Identifier: BSL-1.0
//
// Squares are transposed in registers; see transpose.hpp.

namespace pp::host::PIPE_ISA {

/// Where lane `lane` of a row comes from when two rows exchange the lanes whose number differs in
/// bit `step`: lanes of the upper row are counted from `lanes` on.
constexpr int exchange_source(int lane, int step, int lanes, bool upper) {
  if (upper) return (lane & step) != 0 ? lane + lanes : lane + step;
  return (lane & step) != 0 ? lane - step + lanes : lane;
}

// nvcc's front end loses a parameter pack inside this builtin, so the lanes are spelled out.
template <class T, int Step, bool Upper>
[[gnu::always_inline]] inline vec<T> exchanged(vec<T> a, vec<T> b) {
  constexpr int N = lanes<T>;
#define PIPE_SOURCE(lane) exchange_source(lane, Step, N, Upper)
#define PIPE_SOURCES(lane) \
  PIPE_SOURCE(lane), PIPE_SOURCE((lane) + 1), PIPE_SOURCE((lane) + 2), PIPE_SOURCE((lane) + 3)
  if constexpr (N == 2) return __builtin_shufflevector(a, b, PIPE_SOURCE(0), PIPE_SOURCE(1));
  if constexpr (N == 4) return __builtin_shufflevector(a, b, PIPE_SOURCES(0));
  if constexpr (N == 8) return __builtin_shufflevector(a, b, PIPE_SOURCES(0), PIPE_SOURCES(4));
  if constexpr (N == 16)
    return __builtin_shufflevector(a, b, PIPE_SOURCES(0), PIPE_SOURCES(4), PIPE_SOURCES(8),
                                   PIPE_SOURCES(12));
#undef PIPE_SOURCE
#undef PIPE_SOURCES
}

template <int Step, class T>
[[gnu::always_inline]] inline void exchange_rows(vec<T> (&row)[lanes<T>]) {
  if constexpr (Step < lanes<T>) {
#pragma GCC unroll 16
    for (int r = 0; r < lanes<T>; ++r) {
      if ((r & Step) != 0) continue;
      vec<T> const low = row[r], high = row[r + Step];
      row[r] = exchanged<T, Step, false>(low, high);
      row[r + Step] = exchanged<T, Step, true>(low, high);
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
void transpose(T const* in, extent rows, extent columns, extent in_stride, T* out,
               extent out_stride) {
  transpose_squares<T>(&transpose_square<T>, lanes<T>, in, rows, columns, in_stride, out,
                       out_stride);
}

/// out[c * rows + r] = in[r * columns + c], both dense.
template <class T>
void transpose(T const* in, extent rows, extent columns, T* out) {
  transpose(in, rows, columns, columns, out, rows);
}

}  // namespace pp::host::PIPE_ISA
