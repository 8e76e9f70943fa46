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
#include <system_error>

#include <pipe/backend/host/contraction_loops.hpp>
#include <pipe/backend/host/narrow_matrix.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/row_kernels.hpp>
#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/owner.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/graph/op.hpp>
#include <pipe/infer/kept_attention.hpp>
#include <pipe/infer/row_plan.hpp>
#include <pipe/runtime/host/core/pinning.hpp>
#include <pipe/runtime/host/core/team.hpp>

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
  heap_array<host::narrow_matrix> matrices;     ///< by op: its matrix, if that is narrow
};

/// The interpreter of one model, with the keys and values of a whole context. Its threads divide an
/// op's columns, rows or heads, so that every number is computed by one thread, as by one alone.
///
/// Everything is compiled for size, since the loops that take time are in the kernels.
///
/// law: the bits of a result depend neither on the number of threads nor on the rows that run
///      together
template <class T>
class new_rows {
  using extent = host::extent;

 public:
  /// The maximum number of positions that run together and so share the reads of a matrix. A core
  /// reads a number from memory in the time of about 40 multiply-adds, so with 256 rows a product
  /// waits for memory at most a seventh of its time. More rows would not stay in L2: those of a
  /// layer of 768 channels have 0.8 MB, and all values of GPT-2 that live together 5 MB.
  static constexpr int most_rows = 256;

  /// Plans one block of memory for the new rows of all values, the keys and values of all
  /// attentions and the threads' workspaces, and allocates it once: run() allocates nothing.
  ///
  /// throws: error if a thread cannot be started
  [[gnu::cold]] new_rows(new_rows_model<T>&& model, int threads)
      : m_(static_cast<new_rows_model<T>&&>(model)),
        rows_(m_.context < most_rows ? m_.context : most_rows),
        plan_(m_.ops, m_.values, m_.output, m_.context, rows_), caches_(long(m_.ops.size())) {
    long total = plan_.total();
    auto const room = [&](long elements) {
      long const begin = total;
      total += padded<T>(elements);
      return begin;
    };
    for (long i = 0; i < caches_.size(); ++i) {
      op const& o = m_.ops[std::size_t(i)];
      long const needed = padded<T>(workspace_of(int(i)));
      if (needed > workspace_) workspace_ = needed;
      if (row_rule_of(o.kind) != row_rule::attention) continue;
      kept_attention<T> const a = attention_of(o, {}, 0, 0);
      caches_[i] = {room(a.shape.kv_heads * a.keys_of_head()),
                    room(a.shape.kv_heads * a.values_of_head())};
    }
    work_ = room(threads * workspace_);
    // With room to begin at a multiple of `alignment` bytes.
    memory_ = heap_array<T>(total + alignment / long(sizeof(T)));
    std::uintptr_t const begin = reinterpret_cast<std::uintptr_t>(memory_.begin());
    base_ = memory_.begin() +
            (std::uintptr_t(align_up(long(begin % alignment))) - begin % alignment) / sizeof(T);
    if (threads == 1) return;
    // As ranks do: with fewer cores than threads, a spinning thread would keep others from running.
    executor_settings const waits = fit_to_cores({}, threads);
    try {
      team_ = owner<team>(new team(threads, waits.waiting.spin, -1));
    } catch (std::system_error const& e) {
      throw_error<error>({"decoder: cannot start ", threads - 1, " threads: ", e.what()});
    }
  }

  /// The number of the next `left` tokens that are to run together: all, or about equal blocks.
  int block_of(extent left) const {
    extent const blocks = (left + rows_ - 1) / rows_;
    return int(host::largest_part(left, host::row_alignment, int(blocks)));
  }
  int threads() const { return team_ == nullptr ? 1 : team_->size(); }
  host::isa runs_on() const { return m_.kernels.runs_on; }
  /// Bytes allocated.
  long bytes() const { return memory_.size() * long(sizeof(T)); }

  /// Runs tokens at positions from `position` on; all positions before have been run. Returns the
  /// logits of the last one, or nothing if more tokens follow at once.
  ///
  /// needs: at most block_of() tokens of the vocabulary, position + tokens.size() <= context
  [[gnu::cold]] std::span<T const> run(std::span<int const> tokens, int position, bool is_end) {
    int const n = int(tokens.size()), count = int(m_.ops.size());
    for (int i = 0; i < count;) {
      int const end = plan_.end_of_chain(i);
      // From the last attention on only the last row is needed, and only at the end.
      int const last_attention = plan_.last_attention(), first = i < last_attention ? 0
                                                                 : is_end           ? n - 1
                                                                                    : n;
      if (i > last_attention && !is_end) break;
      op const& o = m_.ops[std::size_t(i)];
      if (row_rule const rule = row_rule_of(o.kind); rule == row_rule::product)
        multiply(i, first, n);
      else if (rule == row_rule::attention)
        attend(o, caches_[i], first, n, position);
      else
        run_chain(i, end, first, n, tokens, position);
      i = end;
    }
    if (!is_end) return {};
    return {row(m_.output, n - 1), std::size_t(m_.vocabulary)};
  }

 private:
  /// The offsets of the keys and the values of an attention, head after head.
  struct cache {
    long keys = 0, values = 0;
  };
  /// Attention o in a run of n new positions from `position` on.
  kept_attention<T> attention_of(op const& o, cache const& kept, extent n, extent position) const {
    attention_attributes const of = o.attributes.attention();
    return {of.scores.is_plain() ? m_.kernels.attention : m_.kernels.shaped,
            {1, n, position + n, of.heads, of.kv_heads, o.columns / of.heads, true, of.scores,
             m_.masks[o.leaf]},
            m_.context,
            weights(o.in[2]),
            base_ + kept.keys,
            base_ + kept.values};
  }

  /// The columns of a table that are transposed at a time.
  static constexpr extent transposed_columns = 64;
  /// The rows that pass through all ops of a chain before the next ones: they stay in L1 or L2.
  static constexpr extent chain_rows = 8;
  /// Below this number of rows a matrix is read in place.
  static constexpr extent packing_rows = 4;

  /// The blocking of a product of new rows, which finds its matrix in memory: a panel of it is read
  /// once, into L2, for all rows, with the sums of about half a MiB beside it if the sum is cut.
  host::blocking blocking_of(product_shape const& shape, bool in_place) const {
    constexpr extent deepest = 768, panels = 8;
    extent const n = shape.columns, k = shape.inner, tile = m_.kernels.attention.tiles.columns();
    if (in_place && shape.rows < packing_rows) return {shape.rows, n, host::even_depth(k, 256), false};
    return {shape.rows, k > deepest ? panels * tile : tile, host::even_depth(k, deepest), true};
  }
  /// Numbers of workspace that a thread needs for op i with up to rows_ rows.
  [[gnu::cold]] long workspace_of(int i) const {
    op const& o = m_.ops[std::size_t(i)];
    row_rule const rule = row_rule_of(o.kind);
    if (rule == row_rule::norm) return 2;
    if (rule == row_rule::attention) return attention_of(o, {}, 0, 0).workspace();
    if (rule != row_rule::product) return 0;
    bool const is_narrow = m_.matrices[i].data != nullptr,
               transposes = !is_narrow && o.in[1].where == space::parameter_transposed;
    extent const n = transposes ? transposed_columns : o.columns,
                 k = o.attributes.contraction().inner;
    long most = 0;
    for (extent const r : {extent(rows_), packing_rows - 1})
      if (long const bytes = long(
              host::contraction_workspace<T>(n, k, blocking_of({r < rows_ ? r : rows_, n, k},
                                                               !is_narrow)));
          bytes > most)
        most = bytes;
    return padded<T>(most / long(sizeof(T)) + 1) + (transposes ? transposed_columns * k : 0);
  }

  /// The numbers of a row of a value.
  long width(operand x) const { return plan_.width(x.index); }
  /// Row r of the new rows of a value.
  T* row(operand x, extent r) { return base_ + plan_.at(x.index) + r * plan_.stride(x.index); }
  /// The values of a parameter; null for an absent operand.
  T const* weights(operand x) const {
    return x.where == space::none ? nullptr : m_.weights[x.index];
  }

  /// A part of an op: a range of its rows, columns or heads, and the thread's workspace.
  using part_of_op = function_ref<void(host::part_range, T*)>;
  /// Calls work for parts of [0, n), multiples of `unit`, on all threads; or once, if all of it
  /// takes one thread less than 10 microseconds: a hand-off takes half a microsecond if all threads
  /// run, but much longer if one has no core. `numbers`: read from memory; `sums`: multiply-adds; a
  /// thread does about 4 and 64 of these in a nanosecond.
  [[gnu::cold]] void divide(extent n, extent unit, extent numbers, extent sums, part_of_op work) {
    constexpr extent worth_dividing = 10'000;  // nanoseconds
    if (team_ == nullptr || n <= unit || numbers / 4 + sums / 64 < worth_dividing)
      return work({0, n}, base_ + work_);
    team_->run([&](int part) {
      host::part_range const own = host::own_part(n, unit, part, team_->size());
      if (own.size() > 0) work(own, base_ + work_ + part * workspace_);
    });
  }

  /// Runs the ops [i, end) of a chain on the rows [first, n) of the new ones.
  [[gnu::cold]] void run_chain(int i, int end, int first, int n, std::span<int const> tokens,
                               int position) {
    extent numbers = 0;
    for (int k = i; k < end; ++k) numbers += m_.ops[std::size_t(k)].columns;
    divide(n - first, host::row_alignment, 2 * (n - first) * numbers, 0,
           [&](host::part_range own, T* workspace) {
             for (extent r = own.begin; r < own.end; r += chain_rows)
               for (int k = i; k < end; ++k)
                 run_op(k, first + int(r),
                        first + int(r + chain_rows < own.end ? r + chain_rows : own.end), tokens,
                        position, workspace);
           });
  }
  /// Runs op i, neither a product nor an attention, on the rows [first, end) of the new ones.
  ///
  /// shape: operands (rows, width of the value), rows = end - first -> y (rows, o.columns)
  [[gnu::cold]] void run_op(int i, int first, int end, std::span<int const> tokens, int position,
                            T* workspace) {
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
          look_up(i, tokens[std::size_t(r)], columns, y + (r - first) * columns);
        break;
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
      case row_rule::copy:
        if (x != y) copy(x, all, y);
        break;
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
               weights(o.in[1]), weights(o.in[2]), workspace, y + at);
        }
        break;
      case row_rule::product:
      case row_rule::attention:
      case row_rule::none: break;  // have functions of their own; refused: see runs_by_position
    }
  }

  /// Row `token` of the table of op i.
  void look_up(int i, int token, extent columns, T* to) const {
    if (m_.matrices[i].data == nullptr)
      return copy(weights(m_.ops[std::size_t(i)].in[1]) + token * columns, columns, to);
    if constexpr (std::is_same_v<T, float>) m_.matrices[i].read_output(token, to);
  }
  /// Copies n numbers. needs: the ranges do not overlap
  static void copy(T const* from, extent n, T* to) {
    std::memcpy(to, from, sizeof(T) * std::size_t(n));
  }

  /// y = x w or, for the transposed table of a tied Embedding, y = x w', on the rows [first, n).
  ///
  /// shape: x (rows, K), w (K, N) or (N, K) -> y (rows, N)
  /// work:  threads have columns, and so a part of w each; or rows, if columns are too few
  [[gnu::cold]] void multiply(int i, int first, int n) {
    op const& o = m_.ops[std::size_t(i)];
    bool const is_narrow = m_.matrices[i].data != nullptr;
    extent const rows = n - first, columns = o.columns, k = o.attributes.contraction().inner,
                 unit = (is_narrow ? host::narrow_columns : host::column_alignment<T>)*(
                     rows == 1 ? 1 : 3);
    T const* const x = row(o.in[0], first);
    T* const y = row(o.out[0], first);
    // Parts of rows are worth it only if they are clearly smaller, since all threads read all of w.
    bool const by_columns = 4 * rows * host::largest_part(columns, unit, threads()) <=
                            5 * columns * host::largest_part(rows, host::row_alignment, threads());
    divide(by_columns ? columns : rows, by_columns ? unit : host::row_alignment, k * columns,
           rows * k * columns, [&](host::part_range own, T* workspace) {
             if (by_columns)
               multiply_part(i, rows, own, x, y, workspace);
             else
               multiply_part(i, own.size(), {0, columns}, x + own.begin * k,
                             y + own.begin * columns, workspace);
           });
  }
  /// The columns `own` of y.
  ///
  /// law:   the bits of the kernels of training, which transpose w once per step: here 64 rows of
  ///        it at a time
  [[gnu::cold]] void multiply_part(int i, extent rows, host::part_range own, T const* x, T* y,
                                   T* workspace) {
    op const& o = m_.ops[std::size_t(i)];
    if (host::narrow_matrix const& w = m_.matrices[i]; w.data != nullptr)
      return multiply_narrow(w, rows, own, x, y, workspace);
    extent const n = o.columns, k = o.attributes.contraction().inner;
    T const* const w = weights(o.in[1]);
    if (o.in[1].where == space::parameter)
      return product({rows, own.size(), k}, x, w + own.begin, n, y + own.begin, n, workspace);
    for (extent j = own.begin; j < own.end; j += transposed_columns) {
      extent const count = own.end - j < transposed_columns ? own.end - j : transposed_columns;
      m_.kernels.attention.transpose(w + j * k, count, k, k, workspace, transposed_columns);
      product({rows, count, k}, x, workspace, transposed_columns, y + j, n,
              workspace + transposed_columns * k);
    }
  }
  /// One row is a matrix-vector product, limited by memory bandwidth, with a kernel of its own;
  /// more rows are the tiled product of training.
  ///
  /// shape: x (rows, k), w (k, n) with rows ldw apart -> y (rows, n) with rows ldy apart
  [[gnu::cold]] PIPE_ONE_COPY void product(product_shape const& shape, T const* x, T const* w,
                                           extent ldw, T* y, extent ldy, T* workspace) {
    if (shape.rows == 1) return m_.kernels.multiply(shape.columns, shape.inner, x, w, ldw, y);
    host::contraction_ends<T> to;
    to.c = y;
    to.ldc = ldy;
    host::contract_tiles<T>(m_.kernels.attention.tiles, shape, {x, shape.inner, 1}, w, ldw, to,
                            workspace, blocking_of(shape, true));
  }
  /// The same for a narrow matrix, whose panels are widened for more than one row.
  ///
  /// law: the bits of product() with the widened matrix
  [[gnu::cold]] void multiply_narrow(host::narrow_matrix const& w, extent rows,
                                     host::part_range own, T const* x, T* y, T* workspace) {
    host::narrow_kernels<T> const& kernels = m_.kernels.narrow[int(w.format.type)];
    if (rows == 1) return kernels.multiply(w, own, x, y);
    product_shape const shape{rows, own.size(), w.inputs};
    host::narrow_factor<T> factor{kernels, w, own.begin};
    host::contraction_ends<T> to;
    to.c = y + own.begin;
    to.ldc = w.outputs;
    to.right = &factor;
    to.make_right = &host::narrow_factor<T>::right;
    host::contract_tiles<T>(m_.kernels.attention.tiles, shape, {x, w.inputs, 1}, nullptr, 0, to,
                            workspace, blocking_of(shape, false));
  }

  /// Appends the keys and values of all n new rows, and computes attention of the queries of rows
  /// [first, n) to these and all earlier positions.
  ///
  /// work: threads have heads of keys to append; then blocks of queries of a head
  [[gnu::cold]] void attend(op const& o, cache const& kept, int first, int n, int position) {
    kept_attention<T> const a = attention_of(o, kept, n, position);
    T const* const x = row(o.in[0], 0);
    extent const d = a.shape.head_size, groups = a.shape.kv_heads, blocks = a.blocks_from(first),
                 of_keys = a.shape.keys * d;
    divide(groups, 1, 4 * n * groups * d, 0, [&](host::part_range own, T* workspace) {
      for (extent group = own.begin; group < own.end; ++group) a.append(x, group, workspace);
    });
    divide(a.shape.heads * blocks, 1, 2 * groups * of_keys,
           2 * (n - first) * a.shape.heads * of_keys, [&](host::part_range own, T* workspace) {
             for (extent k = own.begin; k < own.end; ++k) {
               extent const t = first + k % blocks * host::query_block;
               a.attend(x, k / blocks, t, row(o.out[0], t), workspace);
             }
           });
  }

  new_rows_model<T> m_;
  int rows_ = 0;
  row_plan<T> plan_;
  heap_array<cache> caches_;  // by op
  heap_array<T> memory_;
  owner<team> team_;  // null: one thread
  // base_: the aligned beginning in memory_; work_: the offset of the threads' workspaces from it;
  // workspace_: the numbers of each.
  T* base_ = nullptr;
  long work_ = 0, workspace_ = 0;
};

}  // namespace pp::detail
