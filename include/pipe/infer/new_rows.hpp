// SPDX-License-Identifier: BSL-1.0
//
// The forward pass of a model on new positions only. Rotated keys and values of earlier positions
// are kept in the layout of the attention kernels; everything else is computed row by row. An
// interpreter over the model's ops, so that all models share one copy of it.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <system_error>

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
#include <pipe/infer/kept_pages.hpp>
#include <pipe/infer/row_plan.hpp>
#include <pipe/infer/row_product.hpp>
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

/// New positions of one text: `count` of them, which follow `position` earlier ones, and have the
/// new rows from `first` on.
struct new_positions {
  int text = 0, position = 0, count = 0, first = 0;
};

/// The interpreter of one model, with the keys and values of texts. Its threads divide an
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

  /// Plans one block of memory for the new rows of all values and the threads' workspaces, and
  /// allocates it once, with the keys and values of one text: for one text run() allocates nothing.
  ///
  /// needs: texts <= most_rows
  /// throws: error if a thread cannot be started
  [[gnu::cold]] new_rows(new_rows_model<T>&& model, int threads, int texts, bool keys_in_bf16)
      : m_(static_cast<new_rows_model<T>&&>(model)), rows_(rows_for(m_.context, texts)),
        plan_(m_.ops, m_.values, m_.output, m_.context, rows_, texts), caches_(long(m_.ops.size())),
        keys_in_bf16_(keys_in_bf16) {
    long total = plan_.total(), page = 0;
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
      kept_attention<T> const a = attention_of(o, {}, {});
      caches_[i] = {page, page + padded<T>(a.all_keys())};
      page = caches_[i].values + padded<T>(a.all_values());
    }
    if (page > 0) {
      int const of_text = (m_.context + int(host::key_block) - 1) / int(host::key_block);
      pages_ = kept_pages<T>(page, int(host::key_block), m_.context, texts, of_text);
    }
    work_ = room(threads * workspace_);
    // With room to begin at a multiple of `alignment` bytes.
    memory_ = heap_array<T>(total + alignment / long(sizeof(T)));
    base_ = first_aligned(memory_);
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
  /// The most tokens that run together.
  int most_tokens() const { return rows_; }
  int threads() const { return team_ == nullptr ? 1 : team_->size(); }
  host::isa runs_on() const { return m_.kernels.runs_on; }
  /// Bytes allocated.
  long bytes() const { return memory_.size() * long(sizeof(T)) + pages_.bytes(); }
  /// The keys and values of all texts.
  kept_pages<T>& pages() { return pages_; }

  /// Runs the next tokens of texts whose earlier positions have been run. At the end returns the
  /// logits of each text's last one; before it more tokens of a text follow at once.
  ///
  /// shape: tokens[n], the sum of all counts -> logits[parts, vocabulary]
  /// needs: at most most_tokens() tokens of the vocabulary, in the context; texts once each; at the
  ///        end one text, or one token of each
  [[gnu::cold]] std::span<T const> run(std::span<int const> tokens,
                                       std::span<new_positions const> parts, bool is_end) {
    int const n = int(tokens.size()), count = int(m_.ops.size());
    for (new_positions const& p : parts)
      if (plan_.last_attention() >= 0)
        pages_.make_writable(p.text, p.position, p.position + p.count);
    parts_ = parts;
    first_end_ = n - int(parts.size());
    for (int i = 0; i < count;) {
      int const end = plan_.end_of_chain(i);
      // From the last attention on only the last row is needed, and only at the end.
      int const last_attention = plan_.last_attention(), first = i < last_attention ? 0
                                                                 : is_end           ? first_end_
                                                                                    : n;
      if (i > last_attention && !is_end) break;
      op const& o = m_.ops[std::size_t(i)];
      if (row_rule const rule = row_rule_of(o.kind); rule == row_rule::product)
        multiply(i, first, n);
      else if (rule == row_rule::attention)
        attend(o, caches_[i], first, n);
      else
        run_chain(i, end, first, n, tokens);
      i = end;
    }
    if (!is_end) return {};
    return {row(m_.output, first_end_), parts.size() * std::size_t(m_.vocabulary)};
  }

 private:
  /// The offsets of the keys and the values of an attention in a page, head after head.
  struct cache {
    long keys = 0, values = 0;
  };
  /// The rows that run together: whole blocks of a prompt, or a token of every text.
  static int rows_for(int context, int texts) {
    int const most = context < most_rows ? context : most_rows;
    return texts > most ? texts : most;
  }
  /// The position of new row r.
  extent position_of(extent r) const {
    std::size_t part = 0, end = parts_.size();
    while (end - part > 1) {
      std::size_t const middle = (part + end) / 2;
      (parts_[middle].first <= r ? part : end) = middle;
    }
    return parts_[part].position + r - parts_[part].first;
  }
  /// Attention o of the new positions of a text.
  kept_attention<T> attention_of(op const& o, cache const& kept, new_positions const& of) const {
    attention_attributes const how = o.attributes.attention();
    return {how.scores.is_plain() ? m_.kernels.attention : m_.kernels.shaped,
            {1, of.count, of.position + of.count, how.heads, how.kv_heads, o.columns / how.heads,
             true, how.scores, m_.masks[o.leaf]},
            m_.context,
            weights(o.in[2]),
            pages_.of(of.text),
            kept.keys,
            kept.values,
            keys_in_bf16_ ? &m_.kernels.kept : nullptr};
  }

  /// The rows that pass through all ops of a chain before the next ones: they stay in L1 or L2.
  static constexpr extent chain_rows = 8;
  /// Numbers of workspace that a thread needs for op i with up to rows_ rows.
  [[gnu::cold]] long workspace_of(int i) const {
    op const& o = m_.ops[std::size_t(i)];
    row_rule const rule = row_rule_of(o.kind);
    if (rule == row_rule::norm) return 2;
    if (rule == row_rule::attention) return attention_of(o, {}, {}).workspace();
    return rule == row_rule::product ? product_of(i).workspace(rows_) : 0;
  }
  /// Op i, a product.
  row_product<T> product_of(int i) const {
    op const& o = m_.ops[std::size_t(i)];
    return {m_.kernels,
            m_.matrices[i],
            weights(o.in[1]),
            o.in[1].where == space::parameter_transposed,
            o.attributes.contraction().inner,
            o.columns};
  }

  /// The numbers of a row of a value.
  long width(operand x) const { return plan_.width(x.index); }
  /// Row r of the new rows of a value.
  T* row(operand x, extent r) {
    return base_ + plan_.at(x.index) +
           (r - (plan_.is_end(x.index) ? first_end_ : 0)) * plan_.width(x.index);
  }
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
  [[gnu::cold]] void run_chain(int i, int end, int first, int n, std::span<int const> tokens) {
    extent numbers = 0;
    for (int k = i; k < end; ++k) numbers += m_.ops[std::size_t(k)].columns;
    divide(n - first, host::row_alignment, 2 * (n - first) * numbers, 0,
           [&](host::part_range own, T* workspace) {
             for (extent r = own.begin; r < own.end; r += chain_rows)
               for (int k = i; k < end; ++k)
                 run_op(k, first + int(r),
                        first + int(r + chain_rows < own.end ? r + chain_rows : own.end), tokens,
                        workspace);
           });
  }
  /// Runs op i, neither a product nor an attention, on the rows [first, end) of the new ones.
  ///
  /// shape: operands (rows, width of the value), rows = end - first -> y (rows, o.columns)
  [[gnu::cold]] void run_op(int i, int first, int end, std::span<int const> tokens, T* workspace) {
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
        each([&](int r, T const* from, T* to) {
          m_.kernels.add(columns, from, weights(o.in[1]) + position_of(r) * columns, to);
        });
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

  /// The product i on the rows [first, n).
  ///
  /// work: threads have columns, and so a part of the matrix each; or rows, if columns are too few
  [[gnu::cold]] void multiply(int i, int first, int n) {
    row_product<T> const of = product_of(i);
    operand const from = m_.ops[std::size_t(i)].in[0], to = m_.ops[std::size_t(i)].out[0];
    extent const rows = n - first, columns = of.columns, k = of.inner, unit = of.unit(rows);
    T const* const x = row(from, first);
    T* const y = row(to, first);
    // Parts of rows are worth it only if they are clearly smaller, since all threads read all of w.
    bool const by_columns = 4 * rows * host::largest_part(columns, unit, threads()) <=
                            5 * columns * host::largest_part(rows, host::row_alignment, threads());
    divide(by_columns ? columns : rows, by_columns ? unit : host::row_alignment, k * columns,
           rows * k * columns, [&](host::part_range own, T* workspace) {
             if (by_columns)
               of.multiply(rows, own, x, y, workspace);
             else
               of.multiply(own.size(), {0, columns}, x + own.begin * k, y + own.begin * columns,
                           workspace);
           });
  }

  /// Appends the keys and values of all n new rows, and computes attention of the queries of rows
  /// [first, n) to those of their text.
  ///
  /// work: threads have heads of keys of a text to append; then blocks of queries of a head
  [[gnu::cold]] void attend(op const& o, cache const& kept, int first, int n) {
    attention_attributes const how = o.attributes.attention();
    extent const d = o.columns / how.heads, groups = how.kv_heads, texts = extent(parts_.size());
    extent keys = 0;
    for (new_positions const& p : parts_) keys += p.position + p.count;
    auto const of_text = [&](extent part) {
      return attention_of(o, kept, parts_[std::size_t(part)]);
    };
    auto const first_of = [&](extent part) { return parts_[std::size_t(part)].first; };
    auto const x = [&](extent part) { return row(o.in[0], first_of(part)); };
    divide(texts * groups, 1, 4 * n * groups * d, 0, [&](host::part_range own, T* workspace) {
      for (extent k = own.begin; k < own.end; ++k)
        of_text(k / groups).append(x(k / groups), k % groups, workspace);
    });
    if (first == n) return;
    // Of several texts all rows: see run(). The longest one has the most blocks.
    extent const begin = texts == 1 ? first : 0;
    extent blocks = 1;
    for (extent part = 0; part < texts; ++part)
      if (extent const own = of_text(part).blocks_from(begin); own > blocks) blocks = own;
    extent const each = how.heads * blocks;
    divide(texts * each, 1, 2 * groups * keys * d, 2 * (n - first) / texts * how.heads * keys * d,
           [&](host::part_range own, T* workspace) {
             for (extent k = own.begin; k < own.end; ++k) {
               extent const part = k / each, head = k % each / blocks,
                            t = begin + k % blocks * host::query_block;
               if (t < parts_[std::size_t(part)].count)
                 of_text(part).attend(x(part), head, t, row(o.out[0], first_of(part) + t),
                                      workspace);
             }
           });
  }

  new_rows_model<T> m_;
  int rows_ = 0;
  row_plan<T> plan_;
  heap_array<cache> caches_;  // by op
  bool keys_in_bf16_ = false;
  kept_pages<T> pages_;
  std::span<new_positions const> parts_;  // of the call of run()
  int first_end_ = 0;                     // the first of its rows whose logits are read
  heap_array<T> memory_;
  owner<team> team_;  // null: one thread
  // base_: the aligned beginning in memory_; work_: the offset of the threads' workspaces from it;
  // workspace_: the numbers of each.
  T* base_ = nullptr;
  long work_ = 0, workspace_ = 0;
};

}  // namespace pp::detail
