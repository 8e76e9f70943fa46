// SPDX-License-Identifier: BSL-1.0
//
// The kernels of a decoder's new rows, which fill the table of row_kernels.hpp. A product with one
// row is bound by the bytes of the matrix, so the matrix is read in the order of memory, eight rows
// side by side.

/// y = x w for one row x.
///
/// shape: x (k), w (k, n), row stride ldw -> y (n)
/// law:   an element is one chain of fused multiply-adds over ascending k, as in a tile: the bits
///        of contract()
/// cost:  reads w once, k * n elements; a block of y stays in L1 while the rows of w pass by
template <class T>
void multiply_row(extent n, extent k, T const* x, T const* w, extent ldw, T* y) {
  constexpr int Lanes = lanes<T>, Rows = 8;
  constexpr extent block = 4096 / sizeof(T);  // of y, in L1 while the rows of w pass by
  extent const whole = n / Lanes * Lanes;
  for (extent j0 = 0; j0 < whole; j0 += block) {
    extent const j1 = j0 + block < whole ? j0 + block : whole;
    extent p = 0;
    for (; p + Rows <= k; p += Rows)
      for (extent j = j0; j < j1; j += Lanes) {
        vec<T> sum = p == 0 ? vec<T>{} : load(y + j);
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r)
          sum = multiply_add(all_lanes(x[p + r]), load(w + (p + r) * ldw + j), sum);
        save(y + j, sum);
      }
    for (; p < k; ++p)
      for (extent j = j0; j < j1; j += Lanes) {
        vec<T> sum = p == 0 ? vec<T>{} : load(y + j);
        sum = multiply_add(all_lanes(x[p]), load(w + p * ldw + j), sum);
        save(y + j, sum);
      }
  }
  if (whole == n) return;
  std::size_t const rest = sizeof(T) * std::size_t(n - whole);
  vec<T> sum{};
  for (extent p = 0; p < k; ++p) {
    vec<T> right{};
    std::memcpy(&right, w + p * ldw + whole, rest);
    sum = multiply_add(all_lanes(x[p]), right, sum);
  }
  std::memcpy(y + whole, &sum, rest);
}

/// y = x + z, n elements.
template <class T>
PIPE_ONE_COPY void add_rows(extent n, T const* x, T const* z, T* y) {
  PIPE_INDEPENDENT
  for (extent i = 0; i < n; ++i) y[i] = x[i] + z[i];
}

/// y = x z, n elements.
template <class T>
PIPE_ONE_COPY void times_rows(extent n, T const* x, T const* z, T* y) {
  PIPE_INDEPENDENT
  for (extent i = 0; i < n; ++i) y[i] = x[i] * z[i];
}

/// y = x above 0, else slope x, n elements; the slope of element i is slope[i], or slope[0] if it
/// is shared.
template <class T>
PIPE_ONE_COPY void slope_rows(extent n, T const* x, T const* slope, bool is_shared, T* y) {
  T const first = slope[0];
  PIPE_INDEPENDENT
  for (extent i = 0; i < n; ++i)
    y[i] = detail::slope_formula::forward(x[i], is_shared ? first : slope[i]);
}

template <class F, int N, class T>
void map_piece(T const* x, T* y) {
  PIPE_INDEPENDENT
  for (int i = 0; i < N; ++i) y[i] = forward_of<F>(x[i]);
}
/// y = F::forward(x) for a row of N elements.
template <class F, int N, class T>
[[gnu::flatten]] PIPE_ONE_COPY void map_row(T const* x, T* y) {
  constexpr int block = 4 * lanes<T>, whole = N / block * block, rest = N - whole;
  for (int i = 0; i < whole; i += block) map_piece<F, block>(x + i, y + i);
  if constexpr (rest > 0) map_piece<F, rest>(x + whole, y + whole);
}

/// The compiled function of formula Index of a program.
template <class Program, int Index>
constexpr row_function<typename Program::element> function_of() {
  using T = typename Program::element;
  constexpr row_formula f = Program::formulas[Index];
  if constexpr (f.kind == op_kind::softmax)
    return &softmax_forward_row<f.columns, T>;
  else if constexpr (f.kind == op_kind::gate)
    return &gate_row<detail::leaf_at<f.leaf, typename Program::leaves>, f.columns, T>;
  else if constexpr (f.kind == op_kind::map)
    return &map_row<detail::leaf_at<f.leaf, typename Program::leaves>, f.columns, T>;
  else
    static_assert(f.kind == op_kind::none, "a kind of row_rule::formula has no function of a row");
}

/// Fills the table of a program over new rows: the kernels that every program calls, and
/// functions[Index] for formula Index.
template <class Program, class T, std::size_t... Is>
void fill_rows(row_kernels<T>& k, [[maybe_unused]] row_function<T>* functions,
               std::index_sequence<Is...>) {
  k.attention.tiles = tiles<T>;
  k.attention.transpose = &transpose<T>;
  k.attention.rotate = &rotate_rows<false, T>;
  k.attention.softmax_row = &softmax_row<false, T>;
  k.attention.finish = &finish_rows<T>;
  if constexpr (Program::shapes_scores) {
    k.shaped = k.attention;
    k.shaped.begin = &begin_rows<T>;
    k.shaped.end = &end_rows<T>;
    k.shaped.softmax_row = &softmax_row<true, T>;
  }
  k.multiply = &multiply_row<T>;
  if constexpr (std::is_same_v<T, float>) {
    k.kept = row_conversions<T, bf16>();
    k.narrow[int(decoder_weights::bf16)] = narrow_kernels_of<decoder_weights::bf16>;
    k.narrow[int(decoder_weights::int8)] = narrow_kernels_of<decoder_weights::int8>;
  }
  k.add = &add_rows<T>;
  k.times = &times_rows<T>;
  k.dot[0] = &dot_row<T, false>;
  k.dot[1] = &dot_row<T, true>;
  k.scale = &scaled_row<T>;
  k.slope = &slope_rows<T>;
  k.norm[0] = &norm_row<T, false, false>;
  k.norm[1] = &norm_row<T, true, false>;
  ((functions[Is] = function_of<Program, int(Is)>()), ...);
}
