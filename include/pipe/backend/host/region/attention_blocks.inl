// SPDX-License-Identifier: BSL-1.0
//
// What the two attention kernels share: copies of one head in the layouts the register tile reads, products of whole
// blocks, and which keys a query sees.

namespace pp::host::PIPE_ISA {

/// Scores are computed in columns of this many: whole vectors, and no less than a tile's rows, so that the transposed
/// reads of the backward pass find every element of a tile written.
template <class T>
inline constexpr int column_step = lanes<T> > tile_rows ? lanes<T> : tile_rows;

/// Takes consecutive parts from a workspace.
template <class T>
struct carver {
  T* at;
  T* take(extent elements) {
    T* const part = at;
    at += elements;
    return part;
  }
};

/// to[rows, vectors * lanes] = (from zero, or continuing `to`) A[rows, k] * B[k, vectors * lanes]; see tile.
template <class T>
void multiply_block(extent rows, extent vectors, extent k, strided<T const> a, T const* b, extent ldb, T* to,
                    extent ldto, bool continuing) {
  int wide = 0, high = 0;
  for (extent v = 0; v < vectors; v += wide) {
    wide = next_tile_vectors(vectors - v);
    extent const j = v * lanes<T>;
    for (extent i = 0; i < rows; i += high) {
      high = next_tile_rows(rows - i);
      T* const corner = to + i * ldto + j;
      tile_of(high, wide, k, a.data + i * a.row, a.row, a.column, b + j, ldb,
              tile_ends<T>{continuing ? corner : nullptr, ldto, corner, ldto, false});
    }
  }
}

/// to = from[keys, d] as blocks [d][key_block] of key_block keys each, zero beyond the last key.
template <class T>
void transpose_blocks(T const* from, extent stride, extent keys, extent d, T* to) {
  for (extent s = 0; s < keys; s += key_block, to += d * key_block) {
    extent const count = keys - s < key_block ? keys - s : key_block;
    transpose(from + s * stride, count, d, stride, to, key_block);
    for (extent c = 0; c < d; ++c)
      for (extent r = count; r < round_up(count, column_step<T>); ++r) to[c * key_block + r] = T(0);
  }
}

/// Keys that a query sees of those from key s on, where the first `present` are there.
inline extent visible_keys(attention_shape const& shape, extent present, extent query, extent s) {
  extent all = shape.causal ? query + shape.keys - shape.queries + 1 : shape.keys;
  if (all > present) all = present;
  return all < s ? 0 : all - s;
}

/// Turns `rows` rows of one head by the angles of their positions, back if `Back`; zero from d up to `padded`. The halves
/// x1, x2 of a row become x1 cos - x2 sin and x2 cos + x1 sin; a row of `rotation` holds d / 2 cosines and d / 2 sines.
///
/// source: Su et al., RoFormer, 2021; the pairing of Hugging Face's Llama
template <bool Back, class T>
void turn_rows(T const* from, extent stride, extent rows, extent d, T const* rotation, extent padded, T* to,
               extent to_stride) {
  extent const half = d / 2;
  for (extent r = 0; r < rows; ++r, from += stride, rotation += d, to += to_stride) {
    T const *const cosine = rotation, *const sine = rotation + half;
    extent c = 0;
    for (; c + lanes<T> <= half; c += lanes<T>) {
      vec<T> const x1 = load(from + c), x2 = load(from + half + c), s = Back ? -load(sine + c) : load(sine + c);
      save(to + c, x1 * load(cosine + c) - x2 * s);
      save(to + half + c, x2 * load(cosine + c) + x1 * s);
    }
    for (; c < half; ++c) {
      T const x1 = from[c], x2 = from[half + c], s = Back ? -sine[c] : sine[c];
      to[c] = x1 * cosine[c] - x2 * s;
      to[half + c] = x2 * cosine[c] + x1 * s;
    }
    for (c = d; c < padded; ++c) to[c] = T(0);
  }
}

/// x[c] = e^(x[c] * scale - shift) for one vector.
template <class T>
[[gnu::always_inline]] inline vec<T> exponentials(T* x, T scale, T shift) {
  for (int lane = 0; lane < lanes<T>; ++lane) x[lane] = math::exp(x[lane] * scale - shift);
  return load(x);
}

/// to[c] = from[c] * factor, c < d
template <class T>
void scale_row(T const* from, extent d, T factor, T* to) {
  extent c = 0;
  for (; c + lanes<T> <= d; c += lanes<T>) save(to + c, load(from + c) * factor);
  for (; c < d; ++c) to[c] = from[c] * factor;
}

}  // namespace pp::host::PIPE_ISA
