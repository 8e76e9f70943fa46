// SPDX-License-Identifier: BSL-1.0
//
// The forward pass of a model on new positions only. Rotated keys and values of earlier positions
// are kept in the layout of the attention kernels; everything else is computed row by row. An
// interpreter over the model's ops, so that all models share one copy of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <pipe/backend/host/attention_forward.hpp>
#include <pipe/backend/host/contraction_loops.hpp>
#include <pipe/backend/host/row_kernels.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/graph/op.hpp>

namespace pp::detail {

/// A model as the interpreter reads it. The loss is not among its ops.
template <class T>
struct new_rows_model {
  std::span<op const> ops;
  std::span<value const> values;
  operand output{};  ///< the logits
  int context = 0, vocabulary = 0;
  host::row_kernels<T> kernels;
  heap_array<host::row_function<T>> functions;  ///< by op: its formula, where it has one
  heap_array<mask_function> masks;              ///< by layer type: its mask, or null
  heap_array<T const*> weights;                 ///< by parameter: its values
};

/// The interpreter of one model, with the keys and values of a whole context.
template <class T>
class new_rows {
  using extent = host::extent;

 public:
  /// The maximum number of positions that run together and so share the reads of a matrix.
  static constexpr int most_rows = 32;

  /// Plans one block of memory for the new rows of all values, the keys and values of all
  /// attentions and the kernels' workspace, and allocates it once: run() allocates nothing.
  explicit new_rows(new_rows_model<T>&& model)
      : m_(static_cast<new_rows_model<T>&&>(model)), width_(long(m_.values.size())),
        at_(long(m_.values.size())), caches_(long(m_.ops.size())) {
    rows_ = m_.context < most_rows ? m_.context : most_rows;
    long total = 0;
    auto const room = [&](long elements) {
      long const begin = total;
      total += padded<T>(elements);
      return begin;
    };
    for (long v = 0; v < width_.size(); ++v) {
      // A decodable model's values have one row per position: see runs_by_position.
      width_[v] = m_.values[std::size_t(v)].elements / m_.context;
      at_[v] = room(width_[v] * rows_);
    }
    long work = 0;
    for (long i = 0; i < caches_.size(); ++i) {
      op const& o = m_.ops[std::size_t(i)];
      long const needed = workspace_of(o);
      if (needed > work) work = needed;
      if (row_rule_of(o.kind) != row_rule::attention) continue;
      last_attention_ = int(i);
      caches_[i] = {room(kv_heads(o) * keys_of(o)), room(kv_heads(o) * values_of(o))};
    }
    work_ = room(work);
    // With room to begin at a multiple of `alignment` bytes.
    memory_ = heap_array<T>(total + alignment / long(sizeof(T)));
    std::uintptr_t const begin = reinterpret_cast<std::uintptr_t>(memory_.begin());
    base_ = memory_.begin() +
            (std::uintptr_t(align_up(long(begin % alignment))) - begin % alignment) / sizeof(T);
  }

  /// The maximum number of tokens of one run().
  int rows_at_once() const { return rows_; }
  host::isa runs_on() const { return m_.kernels.runs_on; }
  /// Bytes allocated.
  long bytes() const { return memory_.size() * long(sizeof(T)); }

  /// Runs tokens at positions from `position` on; all positions before have been run. Returns the
  /// logits of the last one.
  ///
  /// needs: 1 to rows_at_once() tokens of the vocabulary, position + tokens.size() <= context
  std::span<T const> run(std::span<int const> tokens, int position) {
    int const n = int(tokens.size());
    // After the last attention only the last row is needed.
    for (int i = 0; i < int(m_.ops.size()); ++i)
      run(i, i > last_attention_ ? n - 1 : 0, n, tokens, position);
    return {row(m_.output, n - 1), std::size_t(m_.vocabulary)};
  }

 private:
  /// The offsets of the keys and the values of an attention, head after head.
  struct cache {
    long keys = 0, values = 0;
  };
  /// The columns of one head, and the number of heads of keys and values, of an attention.
  static int head_size(op const& o) { return o.columns / o.attributes.attention().heads; }
  static int kv_heads(op const& o) { return o.attributes.attention().kv_heads; }
  /// Numbers of the keys, and of the values, of one head for a whole context, in the blocks and the
  /// padded rows of the attention kernels.
  long keys_of(op const& o) const {
    return host::round_up(m_.context, host::key_block) * head_size(o);
  }
  long values_of(op const& o) const { return m_.context * padded_head(o); }
  /// The head size rounded up to whole vectors: the distance of the rows of values and of rotated
  /// rows.
  extent padded_head(op const& o) const {
    return host::round_up(head_size(o), m_.kernels.attention.tiles.lanes);
  }

  /// The columns of a table that are transposed at a time.
  static constexpr extent transposed_columns = 64;
  /// Numbers of workspace that op o needs for rows_at_once() rows.
  long workspace_of(op const& o) const {
    extent const r = rows_;
    row_rule const rule = row_rule_of(o.kind);
    if (rule == row_rule::norm) return 2;
    if (rule == row_rule::attention)
      return r * (2 * padded_head(o) + host::key_block) + 3 * host::query_block + o.columns;
    if (rule != row_rule::product) return 0;
    bool const transposes = o.in[1].where == space::parameter_transposed;
    extent const inner = o.attributes.contraction().inner;
    long const product =
        long(host::contraction_workspace<T>(r, transposes ? transposed_columns : o.columns, inner) /
             sizeof(T)) +
        1;
    return padded<T>(product) + (transposes ? transposed_columns * inner : 0);
  }

  /// The numbers of a row of a value.
  long width(operand x) const { return width_[x.index]; }
  /// Row r of the new rows of a value.
  T* row(operand x, int r) { return base_ + at_[x.index] + r * width(x); }
  /// The values of a parameter; null for an absent operand.
  T const* weights(operand x) const {
    return x.where == space::none ? nullptr : m_.weights[x.index];
  }

  /// Runs op i on the rows [first, end) of the new ones.
  ///
  /// shape: operands (rows, width of the value), rows = end - first -> y (rows, o.columns)
  void run(int i, int first, int end, std::span<int const> tokens, int position) {
    op const& o = m_.ops[std::size_t(i)];
    extent const columns = o.columns, all = (end - first) * columns;
    T* const y = row(o.out[0], first);
    T const* const x = o.in[0].where == space::value ? row(o.in[0], first) : nullptr;
    auto const each = [&](auto const& make) {
      for (int r = first; r < end; ++r)
        make(r, x + (r - first) * width(o.in[0]), y + (r - first) * columns);
    };
    auto const join = [&](auto const& kernel, T const* table, extent stride) {
      for (int r = 0; r < end - first; ++r)
        kernel(columns, x + r * columns, table + r * stride, y + r * columns);
    };
    switch (row_rule_of(o.kind)) {
      case row_rule::lookup:
        for (int r = first; r < end; ++r)
          copy(weights(o.in[1]) + tokens[std::size_t(r)] * columns, columns,
               y + (r - first) * columns);
        break;
      case row_rule::product: multiply(o, end - first, x, y); break;
      case row_rule::add_parameter: join(m_.kernels.add, weights(o.in[1]), 0); break;
      case row_rule::add_position:
        join(m_.kernels.add, weights(o.in[1]) + (position + first) * columns, columns);
        break;
      case row_rule::add: join(m_.kernels.add, row(o.in[1], first), columns); break;
      case row_rule::multiply: join(m_.kernels.times, row(o.in[1], first), columns); break;
      case row_rule::slope:
        each([&](int, T const* from, T* to) {
          m_.kernels.slope(columns, from, weights(o.in[1]), o.attributes.slope().is_shared, to);
        });
        break;
      case row_rule::copy: copy(x, all, y); break;
      case row_rule::formula:
        each([&](int, T const* from, T* to) { m_.functions[i](from, to); });
        break;
      case row_rule::concat:
        each([&](int r, T const* left, T* to) {
          extent const width_of_left = o.attributes.concat().left;
          copy(left, width_of_left, to);
          copy(row(o.in[1], r), columns - width_of_left, to + width_of_left);
        });
        break;
      case row_rule::dot:
        each([&](int r, T const* left, T* to) {
          extent const n = width(o.in[0]);
          m_.kernels.dot[n % m_.kernels.attention.tiles.lanes == 0](int(n), left, row(o.in[1], r),
                                                                    to);
        });
        break;
      case row_rule::scale:
        each([&](int r, T const* from, T* to) {
          m_.kernels.scale(int(columns), from, *row(o.in[1], r), to);
        });
        break;
      case row_rule::norm:
        // A position has several rows if its heads are normalised.
        for (extent at = 0; at < (end - first) * (o.rows / m_.context) * columns; at += columns) {
          auto const norm = m_.kernels.norm[columns % m_.kernels.attention.tiles.lanes == 0];
          norm(o.columns, o.attributes.norm().has_mean, T(o.attributes.norm().epsilon), x + at,
               weights(o.in[1]), weights(o.in[2]), base_ + work_, y + at);
        }
        break;
      case row_rule::attention: attend(o, caches_[i], end - first, x, y, position + first); break;
      case row_rule::none: break;  // refused: see runs_by_position
    }
  }

  /// Copies n numbers. needs: the ranges do not overlap
  static void copy(T const* from, extent n, T* to) {
    std::memcpy(to, from, sizeof(T) * std::size_t(n));
  }

  /// y = x w or, for the transposed table of a tied Embedding, y = x w'.
  ///
  /// shape: x (rows, K), w (K, N) or (N, K) -> y (rows, N)
  /// law:   the bits of the kernels of training, which transpose w once per step: here 64 rows of
  ///        it at a time
  void multiply(op const& o, extent rows, T const* x, T* y) {
    extent const n = o.columns, k = o.attributes.contraction().inner;
    T const* const w = weights(o.in[1]);
    if (o.in[1].where == space::parameter)
      return product({rows, n, k}, x, w, n, y, n, base_ + work_);
    T* const transposed = base_ + work_;
    for (extent j = 0; j < n; j += transposed_columns) {
      extent const count = n - j < transposed_columns ? n - j : transposed_columns;
      m_.kernels.attention.transpose(w + j * k, count, k, k, transposed, transposed_columns);
      product({rows, count, k}, x, transposed, transposed_columns, y + j, n,
              transposed + transposed_columns * k);
    }
  }
  /// One row is a matrix-vector product, limited by memory bandwidth, with a kernel of its own;
  /// more rows are the tiled product of training.
  ///
  /// shape: x (rows, k), w (k, n) with rows ldw apart -> y (rows, n) with rows ldy apart
  void product(product_shape const& shape, T const* x, T const* w, extent ldw, T* y, extent ldy,
               T* workspace) {
    if (shape.rows == 1) return m_.kernels.multiply(shape.columns, shape.inner, x, w, ldw, y);
    host::contraction_ends<T> to;
    to.c = y;
    to.ldc = ldy;
    host::contract_tiles<T>(m_.kernels.attention.tiles, shape, {x, shape.inner, 1}, w, ldw, to,
                            workspace);
  }

  /// Appends the keys and values of the new rows, and computes attention of their queries to these
  /// and all earlier positions.
  ///
  /// shape: x (rows, (H + 2 KV) * d), kept: keys (KV, blocks, d, key_block), values (KV, context,
  ///        padded d) -> y (rows, H * d)
  /// law:   the sums of a row are those of attention_forward on the whole context: the same bits
  /// cost:  4 * rows * position * H * d FLOPs; reads the kept keys and values once per run
  void attend(op const& o, cache const& kept, extent rows, T const* x, T* y, extent position) {
    attention_attributes const of = o.attributes.attention();
    host::attention_set<T> const& set =
        of.scores.is_plain() ? m_.kernels.attention : m_.kernels.shaped;
    extent const d = head_size(o), heads = of.heads, groups = kv_heads(o), wide = padded_head(o),
                 stride = width(o.in[0]);
    T const* const rotation =
        o.in[2].where == space::none ? nullptr : weights(o.in[2]) + position * d;
    host::attention_shape const shape{1, rows, position + rows, heads,           groups,
                                      d, true, of.scores,       m_.masks[o.leaf]};
    host::carver<T> space{base_ + work_};
    T* const rotated = space.take(rows_ * wide);
    T* const sums = space.take(rows_ * wide);
    T* const scores = space.take(rows_ * host::key_block);
    T* const largest = space.take(host::query_block);
    T* const denominators = space.take(host::query_block);
    T* const logs = space.take(host::query_block);
    host::softmax_rows<T> const state{sums, wide, largest, denominators};
    for (extent h = 0; h < heads; ++h) {
      extent const group = h / (heads / groups);
      T* const keys = base_ + kept.keys + group * keys_of(o);
      T* const values = base_ + kept.values + group * values_of(o);
      // The first head of a group appends the keys and values, which the others share.
      if (h % (heads / groups) == 0) {
        T const* key = x + (heads + group) * d;
        T const* const value = x + (heads + groups + group) * d;
        extent key_stride = stride;
        if (rotation != nullptr) {
          set.rotate(key, stride, rows, d, rotation, wide, rotated, wide);
          key = rotated;
          key_stride = wide;
        }
        // Keys are in blocks of key_block positions, each of them transposed.
        for (extent r = 0; r < rows; ++r)
          for (extent c = 0; c < d; ++c)
            keys[(position + r) / host::key_block * d * host::key_block + c * host::key_block +
                 (position + r) % host::key_block] = key[r * key_stride + c];
        set.tiles.copy_rows(value, stride, rows, d, wide, values + position * wide, wide);
      }
      host::positions<T const> query{x + h * d, stride};
      if (rotation != nullptr) {
        set.rotate(query.data, stride, rows, d, rotation, wide, rotated, wide);
        query = {rotated, wide};
      }
      host::attend(set, shape, T(1) / libm::sqrt(T(d)), {h, 0, rows, query},
                   {keys, values, shape.keys}, scores, state);
      set.finish(state, rows, d, y + h * d, o.columns, logs, extent(1));
    }
  }

  new_rows_model<T> m_;
  heap_array<long> width_, at_;  // by value: numbers per row, and the offset of row 0
  heap_array<cache> caches_;     // by op
  heap_array<T> memory_;
  // base_: the aligned beginning in memory_; work_: the offset of the kernels' workspace from it.
  T* base_ = nullptr;
  long work_ = 0;
  int rows_ = 0, last_attention_ = -1;
};

}  // namespace pp::detail
