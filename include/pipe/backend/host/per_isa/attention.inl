// SPDX-License-Identifier: BSL-1.0
//
// The row operations of attention, between the products of register tiles: rotations, softmax and
// its gradient. The loops of attention_forward.hpp and attention_backward.hpp call these functions.

/// Rotary position embedding of `rows` rows of one head: every pair (x1, x2) of a row is rotated by
/// the angle of the row's position, in the other direction if `Back`.
///
/// shape:  from (rows, d), rotation (rows, d): d / 2 cosines, then d / 2 sines -> to (rows,
///         padded), zero from d on
/// law:    (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), x1 = from[c], x2 = from[c + d / 2]
/// needs:  d even
/// source: Su et al., RoFormer, 2021; pairs (c, c + d / 2) as in Hugging Face's Llama
template <bool Back, class T>
void rotate_rows(T const* from, extent stride, extent rows, extent d, T const* rotation,
                 extent padded, T* to, extent to_stride) {
  extent const half = d / 2;
  for (extent r = 0; r < rows; ++r, from += stride, rotation += d, to += to_stride) {
    T const *const cosine = rotation, *const sine = rotation + half;
    extent c = 0;
    for (; c + lanes<T> <= half; c += lanes<T>) {
      vec<T> const x1 = load(from + c), x2 = load(from + half + c),
                   s = Back ? -load(sine + c) : load(sine + c);
      save(to + c, multiply_add(x1, load(cosine + c), -(x2 * s)));
      save(to + half + c, multiply_add(x2, load(cosine + c), x1 * s));
    }
    for (; c < half; ++c) {
      T const x1 = from[c], x2 = from[half + c], s = Back ? -sine[c] : sine[c];
      to[c] = multiply_add(x1, cosine[c], -(x2 * s));
      to[half + c] = multiply_add(x2, cosine[c], x1 * s);
    }
    for (c = d; c < padded; ++c) to[c] = T(0);
  }
}

/// x[c] = e^(x[c] * scale - shift) for one vector.
template <class T>
[[gnu::always_inline]] inline vec<T> exponentials(T* x, T scale, T shift) {
  for (int lane = 0; lane < lanes<T>; ++lane)
    x[lane] = math::exp<products>(multiply_add(x[lane], scale, -shift));
  return load(x);
}

/// to[c] = from[c] * factor, c < d
template <class T>
void scale_row(T const* from, extent d, T factor, T* to) {
  extent c = 0;
  for (; c + lanes<T> <= d; c += lanes<T>) save(to + c, load(from + c) * factor);
  for (; c < d; ++c) to[c] = from[c] * factor;
}

/// The scores of a row whose rule is not plain: z = scale * score; with a cap, z = cap * tanh(z /
/// cap); then z -= slope * distance. Scores of keys that the query does not see become minus
/// infinity.
///
/// shape: score (columns), of which the first `visible` may be seen -> score = z; rules (columns):
///        whether each key is seen, and dz / dscore. Returns false if no key is seen.
/// law:   the result for a key does not depend on other keys
/// needs: columns: whole vectors
template <class T>
bool shape_row(attention_shape const& shape, score_place const& at, T scale, T* score,
               score_row<T>& rules) {
  constexpr int Lanes = lanes<T>;
  extent const visible = at.visible, columns = at.columns;
  T const cap = T(shape.scores.cap), slope = T(at.slope);
  for (extent c = 0; c < columns; c += Lanes) {
    vec<T> z = load(score + c) * scale, by = vec<T>{} + scale;
    if (cap > T(0)) {
      T t[Lanes];
      save(t, z / cap);
      PIPE_INDEPENDENT
      for (int lane = 0; lane < Lanes; ++lane) t[lane] = math::tanh<products>(t[lane]);
      z = cap * load(t);
      by = by * multiply_add(-load(t), load(t), all_lanes(T(1)));
    }
    if (slope > T(0)) {
      T distance[Lanes];
      for (int lane = 0; lane < Lanes; ++lane) {
        extent const d = at.query - at.key - c - lane;
        distance[lane] = T(d < 0 ? -d : d);
      }
      z = multiply_add(all_lanes(-slope), load(distance), z);
    }
    save(score + c, z);
    save(rules.slope + c, by);
  }
  bool seen[key_block];
  bool any = false;
  if (shape.mask != nullptr && visible > 0)
    shape.mask(int(at.query), int(at.key), int(visible), seen);
  extent const hidden = shape.first_key(at.query - shape.place(0)) - at.key;
  for (extent c = 0; c < columns; ++c) {
    bool const sees = c >= hidden && c < visible && (shape.mask == nullptr || seen[c]);
    any = any || sees;
    rules.seen[c] = T(sees);
    if (!sees) score[c] = -static_cast<T>(__builtin_huge_val());
  }
  return any;
}

/// Online softmax: a block of one row's scores becomes e^(scale * score - largest), where `largest`
/// is the row's maximum so far. IsShaped: of shaped scores; for keys that are not seen the result
/// is 0.
///
/// shape:  score (columns), of which the first `visible` are scores; zero beyond, so that the
///         product with the values needs no mask
/// law:    with `first` the row's state starts here; otherwise sum and output so far are multiplied
///         by e^(old largest - new largest). finish_rows divides by the sum.
/// needs:  columns: whole vectors; score may be read up to the next whole vector
/// source: Milakov, Gimelshein, Online normalizer calculation for softmax, 2018
template <bool IsShaped, class T>
void softmax_row([[maybe_unused]] attention_shape const& shape, score_place const& at, T* score,
                 T scale, bool first, softmax_rows<T> const& state, extent row) {
  constexpr int Lanes = lanes<T>;
  extent const visible = at.visible, columns = at.columns;
  [[maybe_unused]] score_row<T> rules;
  if constexpr (IsShaped) {
    if (!shape_row(shape, at, scale, score, rules)) {
      std::memset(score, 0, sizeof(T) * static_cast<std::size_t>(columns));
      return;
    }
    scale = T(1);
  }
  vec<T> const none{}, lowest = none - static_cast<T>(__builtin_huge_val());
  vec<T> top = lowest;
  for (extent c = 0; c < visible; c += Lanes) {
    vec<T> x = load(score + c);
    if (visible - c < Lanes) x = keep_first<T>(x, visible - c, lowest);
    top = x > top ? x : top;
  }
  T largest = fold_lanes<larger, T>(top) * scale;
  if (!first && !(largest > state.largest[row])) largest = state.largest[row];
  partial_sums<T> sums;
  extent c = 0;
  for (; c < visible; c += Lanes) {
    vec<T> x = exponentials(score + c, scale, largest);
    if constexpr (IsShaped) {
      x = x * load(rules.seen + c);
      save(score + c, x);
    }
    if (visible - c < Lanes) {
      x = keep_first<T>(x, visible - c, none);
      save(score + c, x);
    }
    sums.part[sum_vectors == 1 ? 0 : c / Lanes % sum_vectors] += x;
  }
  for (; c < columns; c += Lanes) save(score + c, none);
  T sum = total_of(sums);
  if (!first) {
    T const rescale = math::exp<products>(state.largest[row] - largest);
    scale_row(state.out + row * state.ldo, state.ldo, rescale, state.out + row * state.ldo);
    sum = multiply_add(state.sum[row], rescale, sum);
  }
  state.largest[row] = largest;
  state.sum[row] = sum;
}

/// The end of a block of queries: out = sums of values / sums of exponentials, and lse = largest +
/// log of the sum, from which the backward pass recomputes the probabilities.
///
/// shape: state.out (rows, d) -> out (rows, d), row stride `stride`; lse (rows), stride lse_stride
template <class T>
void finish_rows(softmax_rows<T> const& state, extent rows, extent d, T* out, extent stride, T* lse,
                 extent lse_stride) {
  PIPE_INDEPENDENT
  for (int r = 0; r < query_block;
       ++r) {  // all rows of a block, even beyond `rows`: a constant length vectorises
    state.largest[r] += math::log<products>(state.sum[r]);
    state.sum[r] = T(1) / state.sum[r];
  }
  for (extent r = 0; r < rows; ++r) {
    scale_row(state.out + r * state.ldo, d, state.sum[r], out + r * stride);
    lse[r * lse_stride] = state.largest[r];
  }
}

/// The sum of a[c] * b[c], c < d, in an order that depends on d alone.
template <class T>
T dot(T const* a, T const* b, extent d) {
  partial_sums<T> sums;
  extent c = 0;
  for (; c + sum_lanes<T> <= d; c += sum_lanes<T>) {
#pragma GCC unroll 2
    for (int v = 0; v < sum_vectors; ++v)
      sums.part[v] =
          multiply_add(load(a + c + v * lanes<T>), load(b + c + v * lanes<T>), sums.part[v]);
  }
  T sum = total_of(sums);
  for (; c < d; ++c) sum = multiply_add(a[c], b[c], sum);
  return sum;
}

/// The gradient of one row's softmax in a block of keys: scores become probabilities p = e^(scale *
/// score - lse), slopes (dp, the gradients of p) become ds = p * (dp - mean) * scale.
///
/// shape: score, slope (columns), both zero from `visible` on
/// law:   mean = sum over all keys of p * dp = dot(out, dout), so a block needs no other block
///
/// IsShaped: p is 0 for keys that are not seen, and the slope of the rule takes the place of the
/// scale.
template <bool IsShaped, class T>
void softmax_slopes([[maybe_unused]] attention_shape const& shape, score_place const& at, T* score,
                    T* slope, T scale, T lse, T mean) {
  constexpr int Lanes = lanes<T>;
  extent const visible = at.visible, columns = at.columns;
  [[maybe_unused]] score_row<T> rules;
  if constexpr (IsShaped) shape_row(shape, at, scale, score, rules);
  vec<T> const none{};
  extent c = 0;
  for (; c < visible; c += Lanes) {
    vec<T> p = exponentials(score + c, IsShaped ? T(1) : scale, lse), ds;
    if constexpr (IsShaped) {
      p = p * load(rules.seen + c);
      save(score + c, p);
      ds = p * (load(slope + c) - mean) * load(rules.slope + c);
    } else {
      ds = p * (load(slope + c) - mean) * scale;
    }
    save(slope + c, ds);
    if (visible - c < Lanes) {
      save(score + c, keep_first<T>(p, visible - c, none));
      save(slope + c, keep_first<T>(ds, visible - c, none));
    }
  }
  for (; c < columns; c += Lanes) {
    save(score + c, none);
    save(slope + c, none);
  }
}

template <class T, bool Rotates, int Least, bool IsShaped>
constexpr attention_set<T> attention_kernels() {
  attention_set<T> set;
  set.tiles = tiles<T, Least>;
  set.transpose = &transpose<T>;
  if constexpr (Rotates) {
    set.rotate = &rotate_rows<false, T>;
    set.rotate_back = &rotate_rows<true, T>;
  }
  if constexpr (IsShaped) {
    set.begin = &begin_rows<T>;
    set.end = &end_rows<T>;
  }
  set.softmax_row = &softmax_row<IsShaped, T>;
  set.finish = &finish_rows<T>;
  set.softmax_slopes = &softmax_slopes<IsShaped, T>;
  set.dot = &dot<T>;
  return set;
}
/// The functions that the loops of attention call, with or without rotation, for plain or shaped
/// scores; Least: as in tiles.
template <class T, bool Rotates = true, int Least = 1, bool IsShaped = false>
inline constexpr attention_set<T> attention_rows = attention_kernels<T, Rotates, Least, IsShaped>();

/// Views of queries, keys and values, or of their gradients.
///
/// layout: fused: q (H * d), k (KV * d) and v (KV * d) side by side in each row of one matrix;
///         otherwise q in one matrix, and k beside v in each row of another
template <class P, int G, class U>
attention_slices<U> slices(U* from, U* keys_from) {
  constexpr detail::group g = P::group_at(G);
  constexpr detail::attention_attributes of = g.attributes.attention();
  constexpr extent width = g.columns, key_width = g.columns / of.heads * of.kv_heads,
                   fused = width + 2 * key_width;
  if constexpr (of.is_fused())
    return {{from, fused}, {from + width, fused}, {from + width + key_width, fused}};
  else
    return {{from, width},
            {keys_from, 2 * key_width},
            {keys_from == nullptr ? nullptr : keys_from + key_width, 2 * key_width}};
}
/// Whether the scores of group G are shaped.
template <class P, int G>
constexpr bool is_shaped() {
  return !P::group_at(G).attributes.attention().scores.is_plain();
}
template <class P, int G>
constexpr detail::mask_function mask_of() {
  constexpr detail::group g = P::group_at(G);
  if constexpr (g.attributes.attention().scores.is_masked)
    return detail::mask_of_layer<detail::leaf_at<g.leaf, typename P::leaves>>();
  else
    return nullptr;
}
/// The shape of group G: as planned or, with Lengths, with the segments of the micro-batch. All
/// planned samples are computed if queries or keys have rows of absent ones.
template <class P, int G>
attention_shape shape_in_run([[maybe_unused]] arguments<typename P::element> const& a) {
  attention_shape shape = attention_shape_of(P::group_at(G), P::samples, mask_of<P, G>());
  if constexpr (takes_lengths<P>) {
    constexpr bool is_fused = P::group_at(G).attributes.attention().is_fused();
    shape.segments = a.segments;
    shape.key_segments = is_fused ? a.segments : a.key_segments;
    if (shape.segments != nullptr && shape.key_segments != nullptr)
      shape.samples = a.segments->count;
  }
  return shape;
}
template <class T, class V>
attention_operands<T, V> operands(arguments<T> const& a, attention_slices<V const> const& x,
                                  attention_shape const& shape, int rotation, int ids) {
  return {x,
          reciprocal_sqrt(T(shape.head_size)),
          a.maybe(rotation),
          ids < 0 ? nullptr : a.ids(ids),
          row_conversions<T, V>(),
          sliced_or_null<T, V, std::is_same_v<V, bf16> ? 1 : 0>(),
          a.unit};
}
/// The heads of keys and values, numbered over all samples, that this part owns.
template <class T>
part_range own_heads(arguments<T> const& a, attention_shape const& shape) {
  return part_of(shape.samples * shape.kv_heads, 1, a.part, a.parts);
}

/// out = softmax(q k^T / sqrt(d)) v for every head; lse is kept for the gradient.
///
/// shape: q (B * T, H * d), k and v (B * S, KV * d) -> out (B * T, H * d), lse (B * T, H)
/// work:  a part owns some of the B * KV heads of keys, each with the H / KV query heads that share
///        it
/// cost:  4 * B * H * T * S * d FLOPs, half of them if causal; the scores stay in L1
template <>
struct kernel_of<op_kind::attention> : attention_forward_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    attention_shape const shape = shape_in_run<P, G>(a);
    using V = typename k::V;
    attention_slices<V const> const x =
        slices<P, G, V const>(a.template values<V>(g.in[0]), a.template maybe_values<V>(g.in[1]));
    attention_forward<T, V>(
        attention_rows<T, (g.in[2] >= 0), least_tile_rows<P>(), is_shaped<P, G>()>, shape,
        operands<T, V>(a, x, shape, g.in[2], g.in[3]),
        {{a.template values<V>(g.out[0]), g.columns}, a.at(g.out[1])}, a.workspace,
        own_heads(a, shape));
  }
};

/// dq, dk and dv; the probabilities are recomputed from lse.
///
/// shape: dout, out (B * T, H * d), lse (B * T, H), q, k, v as in the forward -> dq, dk, dv like q,
///        k, v
/// work:  a part owns heads of keys, as in the forward, so no two parts add to one dk
/// cost:  five products where the forward has two: 10 * B * H * T * S * d FLOPs
template <>
struct kernel_of<op_kind::attention_gradient> : attention_backward_facts {
  template <class P, int G>
  static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    attention_shape const shape = shape_in_run<P, G>(a);
    constexpr bool fused = g.attributes.attention().is_fused();
    using V = typename k::V;
    attention_slices<V const> const x = slices<P, G, V const>(
        a.template values<V>(g.in[1]), fused ? nullptr : a.template maybe_values<V>(g.in[4]));
    attention_slices<V> const d =
        slices<P, G, V>(a.template maybe_values<V>(g.out[0]), a.template maybe_values<V>(g.out[1]));
    constexpr bool rotates = fused && g.in[4] >= 0;
    attention_backward<T, V>(attention_rows<T, rotates, least_tile_rows<P>(), is_shaped<P, G>()>,
                             shape, operands<T, V>(a, x, shape, fused ? g.in[4] : -1, g.in[5]),
                             {{a.template values<V>(g.in[2]), g.columns}, a.at(g.in[3])},
                             {a.template values<V>(g.in[0]), g.columns}, d, a.workspace,
                             own_heads(a, shape));
  }
};
