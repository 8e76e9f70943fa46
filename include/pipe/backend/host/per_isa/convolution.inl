// SPDX-License-Identifier: BSL-1.0
//
// Convolutions as kernel groups: finished rows go through an epilogue while they are in the cache.
// The functions are in convolution_loops.hpp.

/// y[c] += x[c] w[c], c < n
template <class T, class V>
void add_products(V const* x, V const* w, extent n, T* y) {
  extent c = 0;
  for (; c + lanes<T> <= n; c += lanes<T>)
    save(y + c, multiply_add(load(x + c), load(w + c), load(y + c)));
  for (; c < n; ++c) y[c] = multiply_add(T(x[c]), T(w[c]), y[c]);
}

/// The functions that the loops of group G call.
template <class P, int G>
constexpr convolution_calls<typename P::element, typename P::value> calls_of_convolution() {
  using T = typename P::element;
  using V = typename P::value;
  convolution_calls<T, V> calls;
  calls.finish = finish_of<P, G>();
  calls.add_products = &add_products<T, V>;
  return calls;
}

/// y = epilogue(conv(x, w)).
///
/// shape: x (B, H, W, C), w (kh, kw, C / groups, N) -> y (B, Y, X, N)
/// work:  parts own rows of y, in multiples of the tallest register tile (row_alignment)
/// law:   an element is one chain of multiply-adds over ascending (tap, channel), for any parts and
///        tiles; pixels outside of the image are zeros
/// cost:  2 * rows * inner * N FLOPs; patches are copied once, with 2 * N / groups FLOPs for each
///        copied element
template <>
struct kernel_of<op_kind::convolution> : convolution_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using T = typename P::element;
    using V = typename P::value;
    convolve<T, V>(products_of<T, V, least_tile_rows<P>(), P::slices>, a, group_in<P, G>,
                   P::samples, calls_of_convolution<P, G>());
  }
};

/// dx = epilogue(the input gradient of dy), which in a forward graph is a transposed convolution.
/// The kernel reads the transposed copy of w, which is made once per update; for a depthwise
/// convolution it reads w.
///
/// shape: dy (B, Y, X, N), w^T (N, kh, kw, C / groups) -> dx (B, H, W, C)
/// law:   as for a convolution, over the taps that reach the pixel
template <>
struct kernel_of<op_kind::convolution_input_gradient> : convolution_input_gradient_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    kernel_of<op_kind::convolution>::run<P, G>(a);
  }
};

/// dw (+)= the sum over pixels of the pixel's patch times dy and, if the layer has a bias, db (+)=
/// sum over rows of dy.
///
/// shape: x (B, H, W, C), dy (B, Y, X, N) -> dw (kh, kw, C / groups, N), db (N)
/// work:  parts own rows of dw (of a depthwise convolution: columns) and columns of db
/// law:   pixels ascending from zero; the finished sum is added once to the sum of earlier
///        micro-batches
template <>
struct kernel_of<op_kind::convolution_weight_gradient> : convolution_weight_gradient_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    using V = typename k::V;
    column_adder<T, V> add = nullptr;
    if constexpr (k::g.prologue.size() > 0) add = &column_sums<T, k::whole, V>;
    convolve_weights<T, V>(products_of<T, V, least_tile_rows<P>(), P::slices>, a, group_in<P, G>,
                           P::samples, calls_of_convolution<P, G>(), add);
  }
};
