// SPDX-License-Identifier: BSL-1.0
//
// Kernels over the flat parameter memory of a stage: the optimizer's formula, the functions that
// optimizers of whole tensors call, and the norm of the gradients.

/// The elements by which loops over parameters fetch their arrays ahead: a processor by itself
/// follows several arrays less well, and each to the end of a page only.
template <class T>
inline constexpr extent update_ahead = 2048 / sizeof(T);
template <class T>
inline constexpr extent squares_ahead = 4096 / sizeof(T);

template <class Optimizer, class T, int... Is>
[[gnu::always_inline]] inline void update_elements(
    typename Optimizer::template coefficients<T> const& c, extent n, part_range own, T* w,
    T const* g, T* state, std::integer_sequence<int, Is...>) {
  constexpr extent block = column_alignment<T>;
  for (extent i = own.begin; i < own.end; i += block) {
    extent const ahead = i + update_ahead<T>;
    __builtin_prefetch(w + ahead, 1);
    __builtin_prefetch(g + ahead);
    (__builtin_prefetch(state + Is * n + ahead, 1), ...);
    PIPE_INDEPENDENT
    for (int k = 0; k < block; ++k)
      w[i + k] = applied<Optimizer>(c, w[i + k], g[i + k], state[Is * n + i + k]...);
  }
}

/// One optimizer step by Optimizer::apply(c, w, g, states...), element by element.
///
/// shape: w, g (n), state (Optimizer::states, n) -> w, state
/// needs: `own` is whole cache lines: the plan aligns every parameter and fills gaps with zeros,
///        and every optimizer keeps a zero with gradient zero
/// cost:  reads w, g and the states and writes w and the states, and is bound by these bytes
template <class Optimizer, class T>
[[gnu::flatten]] void update_elements(typename Optimizer::template coefficients<T> const& c,
                                      extent n, part_range own, T* w, T const* g, T* state) {
  update_elements<Optimizer>(c, n, own, w, g, state,
                             std::make_integer_sequence<int, Optimizer::states>{});
}

/// to[i] += from[i], i < n
template <class T>
PIPE_ONE_COPY void add(extent n, T* to, T const* from) {
  PIPE_INDEPENDENT
  for (extent i = 0; i < n; ++i) to[i] += from[i];
}

/// The sum of squares of n elements: short sums in T, added in double.
///
/// law: the order depends on n and sum_lanes only
template <class T>
double sum_of_squares(extent n, T const* x) {
  constexpr int block = 16 * sum_lanes<T>, together = 4 * sum_vectors,
                line = widest_vector_bytes / int(sizeof(T));
  double total = 0;
  extent i = 0;
  for (; i + block <= n; i += block) {  // a short sum in T
    partial_sums<T> sum[4];
    for (int k = 0; k < block; k += 4 * sum_lanes<T>) {
      for (int c = k; c < k + 4 * sum_lanes<T>; c += line)
        __builtin_prefetch(x + i + c + squares_ahead<T>);
#pragma GCC unroll 8
      for (int v = 0; v < together; ++v) {
        vec<T> const e = load(x + i + k + v * lanes<T>);
        vec<T>& part = sum[v / sum_vectors].part[v % sum_vectors];
        part = multiply_add(e, e, part);
      }
    }
    total += double(total_of((sum[0] + sum[1]) + (sum[2] + sum[3])));
  }
  for (; i < n; ++i) total += double(x[i]) * double(x[i]);
  return total;
}

/// out[c] = sum over r of in[r * columns + c]^2.
///
/// shape: in (rows, columns) -> out (columns)
/// law:   blocks of 64 rows whose sums are added in turn, so that a sum over many rows loses no
///        digits
template <class T>
void sum_squares_of_columns(T const* in, extent rows, extent columns, T* out) {
  constexpr extent block = 64;
  for (extent c = 0; c < columns; ++c) out[c] = T(0);
  for (extent first = 0; first < rows; first += block) {
    extent const count = rows - first < block ? rows - first : block;
    T const* const x = in + first * columns;
    extent c = 0;
    for (; c + lanes<T> <= columns; c += lanes<T>) {
      vec<T> sum{};
      for (extent r = 0; r < count; ++r) {
        vec<T> const e = load(x + r * columns + c);
        sum = multiply_add(e, e, sum);
      }
      save(out + c, load(out + c) + sum);
    }
    for (; c < columns; ++c) {
      T sum(0);
      for (extent r = 0; r < count; ++r)
        sum = multiply_add(x[r * columns + c], x[r * columns + c], sum);
      out[c] += sum;
    }
  }
}

/// The functions that optimizers of whole tensors call, compiled for this instruction set.
struct tensor_kernels {
  /// Calls f(i) for every i in [0, n); f(i) reads and writes element i of its arrays only.
  template <class F>
  [[gnu::noinline]] static void each(extent n, F const f) {
    constexpr int block = 16;
    extent i = 0;
    for (; i + block <= n; i += block) {
      PIPE_INDEPENDENT
      for (int k = 0; k < block; ++k) apply(f, i + k);
    }
    for (; i < n; ++i) apply(f, i);
  }
  template <class F>
  static PIPE_INLINE void apply(F const& f, extent i) {
    if constexpr (requires { f.template operator()<products>(i); })
      f.template operator()<products>(i);
    else
      f(i);
  }
  template <class T>
  static double sum_of_squares(extent n, T const* x) {
    return per_isa::sum_of_squares(n, x);
  }
  /// out[c] = sum over r of in[r * columns + c]^2
  template <class T>
  static void sum_squares_of_columns(T const* in, extent rows, extent columns, T* out) {
    per_isa::sum_squares_of_columns(in, rows, columns, out);
  }
  /// out[c * rows + r] = in[r * columns + c]
  template <class T>
  static void transpose(T const* in, extent rows, extent columns, T* out) {
    per_isa::transpose(in, rows, columns, out);
  }
  /// c[m, n] = a[m, k] b[k, n]; b and c are dense.
  /// workspace: Backend::contraction_elements<T>(m, n, k) elements
  template <class T>
  static void contract(product_shape const& shape, strided<T const> a, T const* b, T* c,
                       T* workspace) {
    per_isa::contract<T>(shape, a, b, shape.columns, store<T>{c, shape.columns}, workspace);
  }
};

template <class T>
struct clamp_to {
  T* x;
  T limit;
  PIPE_INLINE void operator()(extent i) const { x[i] = math::clamped(x[i], limit); }
};

/// Clamps each element of x to [-limit, limit]; NaN stays NaN.
template <class T>
void clamp(extent n, T* x, T limit) {
  tensor_kernels::each(n, clamp_to<T>{x, limit});
}

template <class T>
struct approach_element {
  T* average;
  T const* x;
  T amount;
  PIPE_INLINE void operator()(extent i) const {
    average[i] = multiply_add(amount, x[i] - average[i], average[i]);
  }
};

/// average += amount * (x - average), element by element.
template <class T>
void approach(extent n, T* average, T const* x, T amount) {
  tensor_kernels::each(n, approach_element<T>{average, x, amount});
}

/// One optimizer step on the elements `own` of a range of parameters or, with `whole`, on all
/// elements of one tensor by an optimizer that needs the tensor's shape (Adafactor, LAMB, Muon).
template <class Optimizer, class Context, class Tensor>
void update(Optimizer const& o, Context const& c, Tensor const& t, bool whole, part_range own) {
  using T = std::remove_reference_t<decltype(*t.values)>;
  if constexpr (requires { Optimizer::takes(custom::tensor_kind::matrix); })
    if (whole) return o.update(tensor_kernels{}, c, t);
  if constexpr (requires { Optimizer::states; })
    update_elements<Optimizer, T>(o.template prepare<T>(c), t.shape.elements(), own, t.values,
                                  t.gradients, t.state);
}

/// Functions over parameters and a mini-batch's numbers, for values of type V that the runtime does
/// not know.
template <class T, class V>
void transpose_to(T const* in, extent rows, extent columns, extent in_stride, void* out,
                  extent out_stride) {
  transpose<T, V>(in, rows, columns, in_stride, static_cast<V*>(out), out_stride);
}
template <class T>
void transpose_in_panels(T const* in, part_range own, extent rows, extent columns, void* out) {
  transpose_to_panels<T>(&transpose_square<T>, tiles<T>, in, own, rows, columns,
                         static_cast<T*>(out));
}
template <class T, class V>
void narrow_numbers(T const* from, extent n, void* to) {
  convert_row(from, n, static_cast<V*>(to));
}
template <class T, class V>
void widen_values(void const* from, extent n, T* to) {
  convert_row(static_cast<V const*>(from), n, to);
}

/// Fills the table of the functions that pipeline P calls.
template <template <class> class Table, class P, std::size_t... G>
void fill(Table<P>& k, std::index_sequence<G...>) {
  using T = typename P::element;
  using V = value_of<P>;
  ((k.groups[int(G)] = &run<source_of<P>, int(G)>), ...);
  k.update = &update<typename P::optimizer, typename P::context, typename P::tensor>;
  k.sum_of_squares = &sum_of_squares<T>;
  k.clamp = &clamp<T>;
  k.transpose = &transpose_to<T, V>;
  if constexpr (P::widths.has_panels) k.to_panels = &transpose_in_panels<T>;
  if constexpr (!in_place<T, V>) {
    k.narrow = &narrow_numbers<T, V>;
    k.widen = &widen_values<T, V>;
  }
  if constexpr (P::adds_gradients) k.add = &add<T>;
  if constexpr (P::approaches) k.approach = &approach<T>;
}
