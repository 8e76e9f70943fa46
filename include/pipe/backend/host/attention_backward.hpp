// SPDX-License-Identifier: BSL-1.0
//
// The gradients of attention: probabilities are recomputed block by block from the saved log of
// each row's denominator. Dao et al., FlashAttention, 2022, algorithm 4, in the order that keeps
// one head's key and value gradients in cache.
#pragma once

#include <cstddef>
#include <cstring>

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/attention_loops.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/base/config.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// Writes a gradient by queries, keys or values. If the forward pass has rotated these rows, the
/// gradient is rotated back. `from` may be overwritten.
///
/// shape: from (rows, padded) -> to (rows, d)
template <class T, class V>
void write_rows(attention_set<T> const& set, [[maybe_unused]] value_rows<T, V> const& conversions,
                T* from, extent padded, extent rows, extent d, T const* rotation, positions<V> to) {
  if constexpr (in_place<T, V>) {
    if (rotation != nullptr)
      return set.rotate_back(from, padded, rows, d, rotation, d, to.data, to.stride);
    set.tiles.copy_rows(from, padded, rows, d, d, to.data, to.stride);
  } else {
    if (rotation != nullptr) set.rotate_back(from, padded, rows, d, rotation, d, from, padded);
    conversions.narrow(from, padded, rows, d, to.data, to.stride);
  }
}

/// dq, dk, dv (overwritten; dq alone, or dk with dv, may be absent) from dout and the operands and
/// results of the forward pass.
///
/// shape:     q, out, dout, dq: [B * T, H * d]; k, v, dk, dv: [B * S, KV * d]; lse: [B * T, H]
/// law:       the order of additions is fixed: heads of a group ascending, then queries ascending,
///            for any B
/// own:       the heads of keys to compute, of the B * KV
/// workspace: attention_backward_workspace<T>(shape) bytes
///
/// With p = e^(scale * q k^T - lse), dp = dout v^T and mean = dot(out, dout) per query:
///   ds = p * (dp - mean) * scale,  dq = ds k,  dk = ds^T q,  dv = p^T dout.
/// The loops run over heads, then blocks of queries, then blocks of keys: the gradients of one head
/// of keys stay in cache, for all query heads that share this head.
template <class T, class V = T>
PIPE_ONE_COPY void attention_backward(attention_set<T> const& set, attention_shape const& all,
                                      attention_operands<T, V> const& with,
                                      attention_results<V const, T const> const& of,
                                      positions<V const> dout, attention_slices<V> const& to,
                                      void* workspace, part_range own = everything) {
  positions<V const> const q = with.q, k = with.k, v = with.v, out = of.out;
  positions<V> const dq = to.q, dk = to.k, dv = to.v;
  value_rows<T, V> const& conversions = with.conversions;
  extent const d = all.head_size, group = all.heads / all.kv_heads,
               padded = round_up(d, set.tiles.lanes);
  attention_parts<T> const part(all);
  carver<T> space{static_cast<T*>(workspace)};
  T* const keys_t = space.take(part.transposed);
  T* const values_t = space.take(part.transposed);
  T* const keys = space.take(part.key_rows);
  T* const key_sums = space.take(part.key_rows);
  T* const value_sums = space.take(part.key_rows);
  T* const query = space.take(part.query_rows);
  T* const slope_out = space.take(part.query_rows);
  T* const query_sums = space.take(part.query_rows);
  T* const scores = space.take(part.scores);
  T* const slopes = space.take(part.scores);
  T* const mean = space.take(part.per_query);

  extent const end = within(own, all.samples * all.kv_heads).end * group;
  for (extent head = own.begin * group; head < end; ++head) {
    extent const b = head / all.heads, h = head % all.heads, key_row = all.first_key_row(b),
                 query_row = all.first_query_row(b), at = h / group * d;
    attention_shape const shape = all.of_sample(b);
    extent const present =
        present_keys(with.ids != nullptr ? with.ids + key_row : nullptr, shape.keys);
    double const slope_of_head = slope_of(shape, h);
    if (h % group == 0) {
      positions<V const> const key{k.data + key_row * k.stride + at, k.stride},
          value{v.data + key_row * v.stride + at, v.stride};
      read_rows<T, V>(set, conversions, key, shape.keys, d, with.rotation, padded, {keys, padded});
      transpose_blocks<T>(set, keys, padded, shape.keys, d, keys_t);
      if constexpr (in_place<T, V>) {
        transpose_blocks(set, value.data, value.stride, shape.keys, d, values_t);
      } else {
        conversions.widen(value.data, value.stride, shape.keys, d, d, value_sums, padded);
        transpose_blocks<T>(set, value_sums, padded, shape.keys, d, values_t);
      }
      std::size_t const bytes = sizeof(T) * static_cast<std::size_t>(shape.keys * padded);
      std::memset(key_sums, 0, bytes);
      std::memset(value_sums, 0, bytes);
    }
    for (extent t0 = 0; t0 < shape.queries; t0 += query_block) {
      extent const rows = shape.queries - t0 < query_block ? shape.queries - t0 : query_block;
      extent const first_row = query_row + t0;
      T const* const rotation = with.rotation != nullptr
                                    ? with.rotation + (t0 + shape.keys - shape.queries) * d
                                    : nullptr;
      auto const rows_of = [&](positions<V const> const& x) {
        return positions<V const>{x.data + first_row * x.stride + h * d, x.stride};
      };
      read_rows<T, V>(set, conversions, rows_of(q), rows, d, rotation, padded, {query, padded});
      read_rows<T, V>(set, conversions, rows_of(dout), rows, d, nullptr, padded,
                      {slope_out, padded});
      positions<T const> result{query_sums, padded};
      if constexpr (in_place<T, V>)
        result = rows_of(out);
      else
        conversions.widen(rows_of(out).data, out.stride, rows, d, d, query_sums, padded);
      for (extent r = 0; r < rows; ++r) {
        // The mean of dp over a row's probabilities: the sum of p * dp, which is dot(out, dout).
        mean[r] = set.dot(result.data + r * result.stride, slope_out + r * padded, d);
      }
      extent const seen = visible_keys(shape, present, t0 + rows - 1, 0);
      bool begun = false;  // whether query_sums has sums
      for (extent s0 = shape.first_key(t0) / key_block * key_block; s0 < seen; s0 += key_block) {
        extent const count = shape.keys - s0 < key_block ? shape.keys - s0 : key_block;
        if (shape.mask != nullptr && !mask_shows(shape, t0, rows, s0, count)) continue;
        int high = 0;
        for (extent i = 0; i < rows; i += high) {
          high = set.tiles.next_rows(rows - i);
          extent depth = visible_keys(shape, present, t0 + i + high - 1, s0);
          if (depth > count) depth = count;
          if (depth == 0) continue;
          extent const columns = round_up(depth, set.column_alignment());
          T* const score = scores + i * key_block;
          T* const slope = slopes + i * key_block;
          multiply_block<T>(set.tiles, {high, columns, d}, {query + i * padded, padded, 1},
                            keys_t + s0 * d, key_block, score, key_block, false);
          multiply_block<T>(set.tiles, {high, columns, d}, {slope_out + i * padded, padded, 1},
                            values_t + s0 * d, key_block, slope, key_block, false);
          for (extent r = i; r < i + high; ++r) {
            extent visible = visible_keys(shape, present, t0 + r, s0);
            if (visible > count) visible = count;
            set.softmax_slopes(shape, {shape.place(t0 + r), s0, slope_of_head, visible, columns},
                               scores + r * key_block, slopes + r * key_block, with.scale,
                               of.lse[(first_row + r) * shape.heads + h], mean[r]);
          }
          multiply_block<T>(set.tiles, {high, padded, depth}, {slope, key_block, 1},
                            keys + s0 * padded, padded, query_sums + i * padded, padded, begun);
        }
        begun = true;
        extent const last = visible_keys(shape, present, t0 + rows - 1, s0);
        for (extent s = 0; s < count && s < last; s += high) {
          high = set.tiles.next_rows(count - s);
          // The first query of the block that sees key s0 + s.
          extent skip =
              shape.causal && s0 + s >= shape.scores.prefix ? s0 + s - shape.place(t0) : 0;
          if (skip < 0) skip = 0;
          extent const from = (s0 + s) * padded, depth = rows - skip, corner = skip * key_block + s;
          multiply_block<T>(set.tiles, {high, padded, depth}, {scores + corner, 1, key_block},
                            slope_out + skip * padded, padded, value_sums + from, padded, true);
          multiply_block<T>(set.tiles, {high, padded, depth}, {slopes + corner, 1, key_block},
                            query + skip * padded, padded, key_sums + from, padded, true);
        }
      }
      if (!begun) std::memset(query_sums, 0, sizeof(T) * static_cast<std::size_t>(rows * padded));
      if (dq.data != nullptr)
        write_rows<T, V>(set, conversions, query_sums, padded, rows, d, rotation,
                         {dq.data + first_row * dq.stride + h * d, dq.stride});
    }
    if ((h + 1) % group == 0 && dk.data != nullptr) {
      write_rows<T, V>(set, conversions, key_sums, padded, shape.keys, d, with.rotation,
                       {dk.data + key_row * dk.stride + at, dk.stride});
      write_rows<T, V>(set, conversions, value_sums, padded, shape.keys, d, nullptr,
                       {dv.data + key_row * dv.stride + at, dv.stride});
    }
  }
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
