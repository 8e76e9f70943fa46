// SPDX-License-Identifier: BSL-1.0
//
// Kernels over the flat parameter memory of a stage: the optimizer's formula, and the norm of the gradients.

namespace pp::host::PIPE_ISA {

/// One optimizer step on n elements, n a multiple of a cache line's: the plan aligns every parameter and fills the gaps with
/// zeros, which stay zero. `state` is Optimizer::states arrays of n, one after the other `stride` apart.
template <class Optimizer, class T>
[[gnu::flatten]] void update(typename Optimizer::template coefficients<T> const& c, extent n, T* w, T const* g,
                             T* state, extent stride) {
  constexpr int block = 64 / int(sizeof(T));
  T* const first = state;
  T* const second = state + (Optimizer::states > 1 ? stride : 0);
  for (extent i = 0; i < n; i += block) {
    PIPE_INDEPENDENT
    for (int k = 0; k < block; ++k) {
      if constexpr (Optimizer::states == 0)
        w[i + k] = Optimizer::apply(c, w[i + k], g[i + k]);
      else if constexpr (Optimizer::states == 1)
        w[i + k] = Optimizer::apply(c, w[i + k], g[i + k], first[i + k]);
      else
        w[i + k] = Optimizer::apply(c, w[i + k], g[i + k], first[i + k], second[i + k]);
    }
  }
}

/// to += from
template <class T>
PIPE_ONE_COPY void add(extent n, T* to, T const* from) {
  PIPE_INDEPENDENT
  for (extent i = 0; i < n; ++i) to[i] += from[i];
}

/// Sum of squares of n elements in double precision; the order depends on n and the lane count only.
template <class T>
double sum_of_squares(extent n, T const* x) {
  constexpr int block = 16 * lanes<T>;
  double total = 0;
  extent i = 0;
  for (; i + block <= n; i += block) {  // short runs in T, their sums in double
    vec<T> sum[4] = {};
    for (int k = 0; k < block; k += 4 * lanes<T>) {
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        vec<T> const e = load(x + i + k + v * lanes<T>);
        sum[v] += e * e;
      }
    }
    total += double(fold_lanes<sum_of, T>((sum[0] + sum[1]) + (sum[2] + sum[3])));
  }
  for (; i < n; ++i) total += double(x[i]) * double(x[i]);
  return total;
}

}  // namespace pp::host::PIPE_ISA
