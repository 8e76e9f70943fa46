// SPDX-License-Identifier: BSL-1.0
//
// The gradients of attention: probabilities are recomputed block by block from the saved log of
// each row's denominator. Dao et al., FlashAttention, 2022, algorithm 4, in the order that keeps
// one head's key and value gradients in cache.
#pragma once

#include <cstddef>
#include <cstring>

#include <pipe/backend/host/attention.hpp>
#include <pipe/backend/host/attention_factors.hpp>
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

/// attention_backward by one unit.
template <class By, class T, class V>
PIPE_ONE_COPY void differentiate_heads(attention_set<T> const& set, attention_shape const& all,
                                       attention_operands<T, V> const& with,
                                       attention_results<V const, T const> const& of,
                                       positions<V const> dout, attention_slices<V> const& to,
                                       void* workspace, part_range own) {
  positions<V const> const q = with.q, k = with.k, v = with.v, out = of.out;
  positions<V> const dq = to.q, dk = to.k, dv = to.v;
  value_rows<T, V> const& conversions = with.conversions;
  By by(set, with, all.head_size);
  extent const d = all.head_size, group = all.heads / all.kv_heads, padded = by.padded;
  attention_parts<T> const part = by.parts(all);
  carver<T> space{static_cast<T*>(workspace)};
  by.take_rooms(space, part);
  auto* const keys_t = by.take(space, part.columns);
  auto* const values_t = by.take(space, part.columns);
  auto* const keys = by.take(space, part.rows);
  auto query = by.take_block(space, part), slope_out = by.take_block(space, part);
  T* const key_sums = space.take(part.sums);
  T* const value_sums = space.take(part.sums);
  T* const query_numbers = space.take(part.query_rows);
  T* const slope_numbers = space.take(part.query_rows);
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
      by.make({k.data + key_row * k.stride + at, k.stride}, present, with.rotation, keys, keys_t,
              nullptr);
      by.make({v.data + key_row * v.stride + at, v.stride}, present, nullptr, nullptr, values_t,
              value_sums);
      std::size_t const bytes =
          sizeof(T) * static_cast<std::size_t>(round_up(shape.keys, by.row_alignment) * padded);
      std::memset(key_sums, 0, bytes);
      std::memset(value_sums, 0, bytes);
    }
    typename By::head const of_keys{keys_t, keys, present}, of_values{values_t, nullptr, present};
    for (extent t0 = 0; t0 < shape.queries; t0 += query_block) {
      extent const rows = shape.queries - t0 < query_block ? shape.queries - t0 : query_block;
      extent const first_row = query_row + t0;
      T const* const rotation =
          with.rotation != nullptr ? with.rotation + shape.place(t0) * d : nullptr;
      auto const rows_of = [&](positions<V const> const& x) {
        return positions<V const>{x.data + first_row * x.stride + h * d, x.stride};
      };
      read_rows<T, V>(set, conversions, rows_of(q), rows, d, rotation, padded,
                      {query_numbers, padded});
      read_rows<T, V>(set, conversions, rows_of(dout), rows, d, nullptr, padded,
                      {slope_numbers, padded});
      by.make_both(query, query_numbers, rows);
      by.make_both(slope_out, slope_numbers, rows);
      positions<T const> result{query_sums, padded};
      if constexpr (in_place<T, V>)
        result = rows_of(out);
      else
        conversions.widen(rows_of(out).data, out.stride, rows, d, d, query_sums, padded);
      for (extent r = 0; r < rows; ++r) {
        // The mean of dp over a row's probabilities: the sum of p * dp, which is dot(out, dout).
        mean[r] = set.dot(result.data + r * result.stride, slope_numbers + r * padded, d);
      }
      extent const seen = visible_keys(shape, present, t0 + rows - 1, 0);
      bool begun = false;  // whether query_sums has sums
      for (extent s0 = shape.first_key(t0) / key_block * key_block; s0 < seen; s0 += key_block) {
        extent const count = shape.keys - s0 < key_block ? shape.keys - s0 : key_block;
        if (shape.mask != nullptr && !mask_shows(shape, t0, rows, s0, count)) continue;
        int high = 0;
        for (extent i = 0; i < rows; i += high) {
          high = by.next_queries(rows - i);
          extent depth = visible_keys(shape, present, t0 + i + high - 1, s0);
          if (depth > count) depth = count;
          if (depth == 0) continue;
          extent const columns = round_up(depth, by.column_alignment());
          T* const score = scores + i * key_block;
          T* const slope = slopes + i * key_block;
          by.multiply({high, columns, d}, query.left_from(i), of_keys.columns_from(s0, d), score,
                      key_block, false);
          by.multiply({high, columns, d}, slope_out.left_from(i), of_values.columns_from(s0, d),
                      slope, key_block, false);
          for (extent r = i; r < i + high; ++r) {
            extent visible = visible_keys(shape, present, t0 + r, s0);
            if (visible > count) visible = count;
            set.softmax_slopes(shape, {shape.place(t0 + r), s0, slope_of_head, visible, columns},
                               scores + r * key_block, slopes + r * key_block, with.scale,
                               of.lse[(first_row + r) * shape.heads + h], mean[r]);
          }
          by.multiply({high, padded, depth}, strided<T const>{slope, key_block, 1},
                      of_keys.rows_from(s0, padded), query_sums + i * padded, padded, begun);
        }
        begun = true;
        extent const last = visible_keys(shape, present, t0 + rows - 1, s0);
        for (extent s = 0; s < count && s < last; s += high) {
          high = by.next_keys(count - s, last - s);
          // The first query of the block that sees key s0 + s.
          extent skip =
              shape.causal && s0 + s >= shape.scores.prefix ? s0 + s - shape.place(t0) : 0;
          if (skip < 0) skip = 0;
          skip -= skip % by.depth;
          extent const from = (s0 + s) * padded, depth = rows - skip, corner = skip * key_block + s;
          by.multiply({high, padded, depth}, strided<T const>{scores + corner, 1, key_block},
                      slope_out.right_from(skip), value_sums + from, padded, true);
          by.multiply({high, padded, depth}, strided<T const>{slopes + corner, 1, key_block},
                      query.right_from(skip), key_sums + from, padded, true);
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

/// dq, dk, dv (overwritten; dq alone, or dk with dv, may be absent) from dout and the operands and
/// results of the forward pass.
///
/// shape:     q, out, dout, dq: [B * T, H * d]; k, v, dk, dv: [B * S, KV * d]; lse: [B * T, H]
/// law:       the order of additions is fixed: heads of a group ascending, then queries ascending,
///            for any B. With products of slices, rotated queries and keys, p and ds are rounded to
///            bfloat16 as factors; sums of gradients are in fp32.
/// own:       the heads of keys to compute, of the B * KV
/// workspace: attention_backward_workspace<T, V>(shape) bytes
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
  if constexpr (!in_place<T, V>)
    if (with.slices())
      return differentiate_heads<sliced_factors<T, V>>(set, all, with, of, dout, to, workspace,
                                                       own);
  differentiate_heads<number_factors<T, V>>(set, all, with, of, dout, to, workspace, own);
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
