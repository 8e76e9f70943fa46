// SPDX-License-Identifier: BSL-1.0
//
// The places of a decoder's values in its memory. A value has room from the op that computes it to
// its last reader only, so that many rows at once fit in the caches.
#pragma once

#include <cstddef>
#include <span>

#include <pipe/base/bytes.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/graph/op.hpp>
#include <pipe/graph/op_traits.hpp>

namespace pp::detail {

/// The places of the values of a model's ops in one block of memory, for `rows` new positions, of
/// which the logits of up to `ends` are read. Ops run in chains: a product or an attention by
/// itself, all ops in between row by row, a few rows through the whole chain before the next ones.
///
/// law: a value shares memory with no other that has a reader in the same chain or a later one, but
///      with its operand, row on row, if it is computed element by element and is the last reader
template <class T>
class row_plan {
 public:
  /// needs: the models of decodable.hpp: a value has one row for each position
  [[gnu::cold]] row_plan(std::span<op const> ops, std::span<value const> values, operand output,
                         int context, int rows, int ends)
      : ops_(ops), ends_(ends), value_(long(values.size())), live_(long(values.size())) {
    for (long v = 0; v < value_.size(); ++v)
      value_[v].width = values[std::size_t(v)].elements / context;
    for (int i = 0; i < count(); ++i) {
      if (row_rule_of(op_at(i).kind) == row_rule::attention) last_attention_ = i;
      for (operand const& x : op_at(i).in)
        if (x.where == space::value) value_[x.index].last_reader = i;
    }
    value_[output.index].last_reader = count();
    for (int i = 0; i < count();) {
      int const end = end_of_chain(i);
      for (int k = i; k < end; ++k) place(k, rows);
      drop_before(end);
      i = end;
    }
  }

  /// The numbers of a row of value v, and the place of its first row.
  long width(int v) const { return value_[v].width; }
  long at(int v) const { return value_[v].at; }
  /// Numbers in all, each place aligned.
  long total() const { return total_; }
  /// Whether value v has only the rows whose logits are read.
  bool is_end(int v) const { return value_[v].is_end; }
  /// The last attention, -1 if there is none: from this op on, values have only such rows.
  int last_attention() const { return last_attention_; }

  /// The end of the chain that begins with op i.
  int end_of_chain(int i) const {
    if (is_alone(i)) return i + 1;
    while (i < count() && !is_alone(i)) ++i;
    return i;
  }

 private:
  struct value_row {
    long width = 0, at = 0, size = 0;
    int last_reader = -1;
    bool is_end = false;
  };

  int count() const { return int(ops_.size()); }
  op const& op_at(int i) const { return ops_[std::size_t(i)]; }
  bool is_alone(int i) const {
    row_rule const rule = row_rule_of(op_at(i).kind);
    return rule == row_rule::product || rule == row_rule::attention;
  }
  /// Whether element e of the result of op o depends on element e of its operands only.
  [[gnu::cold]] static bool is_by_element(op const& o) {
    row_rule const rule = row_rule_of(o.kind);
    return rule == row_rule::add_parameter || rule == row_rule::add_position ||
           rule == row_rule::add || rule == row_rule::multiply || rule == row_rule::copy ||
           rule == row_rule::slope || o.kind == op_kind::map;
  }

  /// Gives the result of op i its place: that of its operand, or the lowest that is free.
  [[gnu::cold]] void place(int i, int rows) {
    op const& o = op_at(i);
    int const v = o.out[0].index;
    value_row& mine = value_[v];
    mine.is_end = i >= last_attention_;
    mine.size = padded<T>(mine.width * (mine.is_end ? ends_ : rows));
    if (is_by_element(o) && o.in[0].where == space::value) {
      value_row const& from = value_[o.in[0].index];
      if (from.last_reader == i && from.width == mine.width && from.is_end == mine.is_end) {
        mine.at = from.at;
        for (int k = 0; k < live_count_; ++k)
          if (live_[k] == o.in[0].index) live_[k] = v;
        return;
      }
    }
    for (int k = 0; k < live_count_; ++k) {
      value_row const& other = value_[live_[k]];
      if (mine.at + mine.size <= other.at || other.at + other.size <= mine.at) continue;
      mine.at = other.at + other.size;
      k = -1;  // from the first again
    }
    live_[live_count_++] = v;
    if (mine.at + mine.size > total_) total_ = mine.at + mine.size;
  }
  /// Frees the places of values without a reader from op i on.
  [[gnu::cold]] void drop_before(int i) {
    int kept = 0;
    for (int k = 0; k < live_count_; ++k)
      if (value_[live_[k]].last_reader >= i) live_[kept++] = live_[k];
    live_count_ = kept;
  }

  std::span<op const> ops_;
  int ends_ = 1;
  heap_array<value_row> value_;
  heap_array<int> live_;  // values that have a place
  long total_ = 0;
  int live_count_ = 0, last_attention_ = -1;
};

}  // namespace pp::detail
