// SPDX-License-Identifier: BSL-1.0
//
// Which launches of a program run as one kernel: chains of narrow layers, forward, or the gradients
// of their inputs and weights. The fused kernel reads and writes the same memory as its launches,
// rows of it by the blocks that have them, so whether it may take a launch is seen from addresses:
// what launches share must lie row on row.
#pragma once

#include <pipe/backend/cuda/narrow_mlp/tile.hpp>
#include <pipe/base/static_vector.hpp>
#include <pipe/passes/group.hpp>
#include <pipe/passes/address.hpp>

namespace pp::cuda {

/// Launches [first, first + count) of a program, `rows` of the batch in a tile.
struct narrow_run {
  int first = 0, count = 0, rows = 0;
  bool is_backward = false;
  friend constexpr bool operator==(narrow_run const&, narrow_run const&) = default;
};

/// Memory that a launch reads or writes. `row_bytes`: of a row of the batch; 0: not by rows.
struct narrow_access {
  address at;
  long bytes = 0, row_bytes = 0;
  bool writes = false,
       on_the_way = false;  ///< on_the_way: read before launches before it have ended
};
using narrow_accesses = static_vector<narrow_access, group::max_slots>;

/// Finds the runs of a program whose launches are `items` with operands `operands`.
///
/// GroupAt(int) gives groups; samples: of a micro-batch
/// law: launches of a run, run as one kernel, make the bits that they make one after the other
template <class Program, class GroupAt>
struct narrow_finder {
  Program const& program;
  GroupAt group_at;
  int samples;
  product_format format;

  static constexpr int most_launches = Program::launches / 2 + 1;
  using runs = static_vector<narrow_run, std::size_t(most_launches)>;

  constexpr runs find() const {
    runs all;
    for (int i = 0; i < Program::launches;) {
      narrow_run const r = longest(i);
      if (r.count > 1) all.push_back(r);
      i += r.count > 1 ? r.count : 1;
    }
    return all;
  }

 private:
  static constexpr bool is_weight(group const& g) {
    return g.anchor == op_kind::matmul_weight_gradient;
  }
  static constexpr bool is_input(group const& g) {
    return g.anchor == op_kind::matmul_input_gradient;
  }
  constexpr group at(int launch) const { return group_at(program.items[launch].group); }
  static constexpr int inner_of(group const& g) { return g.attributes.contraction().inner; }
  constexpr address operand(int launch, int slot) const {
    return slot < 0 ? address{} : program.operands[program.items[launch].first + slot].at;
  }
  constexpr long rows_of(group const& g) const { return long(g.rows) * samples; }

  /// Whether group g may be in a run at all.
  constexpr bool takes(group const& g) const {
    bool const product = g.anchor == op_kind::matmul || is_input(g);
    if (!(product || is_weight(g)) || inner_of(g) > narrow_width || g.columns > narrow_width)
      return false;
    if (is_weight(g)) {
      for (step const& s : g.prologue)
        if (s.kind != op_kind::bias_gradient) return false;
      return g.prologue.size() < 2;
    }
    return g.prologue.empty() &&
           plan_for({extent(rows_of(g)), g.columns, inner_of(g)}, format).splits == 1;
  }
  /// What a launch computes from: a matmul's rows, or a gradient's dy.
  constexpr address main_operand(int i) const {
    return operand(i, at(i).in[is_weight(at(i)) ? 1 : 0]);
  }
  constexpr int main_width(group const& g) const { return is_weight(g) ? g.columns : inner_of(g); }
  /// Where its finished rows are.
  constexpr address result(int i) const {
    group const g = at(i);
    return operand(i, g.epilogue.empty() ? g.out[0] : g.epilogue.back().store);
  }
  static constexpr bool same(address const& a, address const& b) {
    return a.where == b.where && a.offset == b.offset;
  }

  constexpr narrow_run longest(int first) const {
    narrow_run run{first, 1, 0, !(at(first).anchor == op_kind::matmul)}, good = run;
    if (!takes(at(first))) return run;
    int levels = is_input(at(first)) ? 1 : 0;  // that are complete
    address now = main_operand(first);
    int width = main_width(at(first));
    for (int i = first;;) {
      group const g = at(i);
      if (!is_weight(g)) now = result(i), width = g.columns;
      run.rows = rows_in_tile(run);
      bool const fits = run.rows > 0;
      if (!fits) break;
      // a gradient of a weight alone, or with the gradient of the same layer's input, has nothing
      // to hand on
      if (run.count > 1 && (!run.is_backward || levels > 1 || (levels == 1 && is_weight(g))))
        good = run;
      if (++i == Program::launches || run.count == most_in_run || now.where == region::none) break;
      group const next = at(i);
      if (!takes(next) || (next.anchor != op_kind::matmul) != run.is_backward ||
          rows_of(next) != rows_of(g) || next.rows != g.rows || !same(main_operand(i), now) ||
          main_width(next) != width)
        break;
      if (is_weight(next) && is_weight(g)) break;
      if (!may_share(first, i)) break;
      levels += is_input(next);
      ++run.count;
    }
    return good;
  }

  // ---- memory ----

  constexpr narrow_accesses accesses(int i, bool is_first) const {
    group const g = at(i);
    int const bytes = bytes_of(format);
    narrow_accesses all;
    auto const by_rows = [&](int slot, int width, bool writes, bool on_the_way = false) {
      if (slot >= 0)
        all.push_back({operand(i, slot), rows_of(g) * width * bytes, long(width) * bytes, writes,
                       on_the_way});
    };
    auto const whole = [&](int slot, long elements, bool writes) {
      if (slot >= 0)
        all.push_back({operand(i, slot), elements * long(sizeof(float)), 0, writes, !writes});
    };
    if (is_weight(g)) {
      by_rows(g.in[0], inner_of(g), false, true);
      if (is_first) by_rows(g.in[1], g.columns, false, true);
      whole(g.out[0], long(inner_of(g)) * g.columns, true);
      for (step const& s : g.prologue) whole(s.store, g.columns, true);
      return all;
    }
    if (is_first) by_rows(g.in[0], inner_of(g), false, true);
    whole(g.in[1], long(inner_of(g)) * g.columns, false);
    by_rows(g.out[0], g.columns, true);
    for (step const& s : g.epilogue) {
      if (s.kind == op_kind::bias || s.kind == op_kind::row_bias)
        whole(s.slot, long(g.columns) * (s.kind == op_kind::bias ? 1 : g.rows), false);
      else if (s.kind != op_kind::dropout)
        by_rows(s.slot, g.columns, false);
      by_rows(s.store, g.columns, true);
    }
    return all;
  }
  static constexpr bool overlap(narrow_access const& a, narrow_access const& b) {
    return a.at.where == b.at.where && a.at.offset < b.at.offset + b.bytes &&
           b.at.offset < a.at.offset + a.bytes;
  }
  /// Whether launch i may run together with those from `first` on.
  constexpr bool may_share(int first, int i) const {
    narrow_accesses const mine = accesses(i, false);
    for (int k = first; k < i; ++k)
      for (narrow_access const& before : accesses(k, k == first))
        for (narrow_access const& now : mine) {
          if (!(before.writes || now.writes) || !overlap(before, now)) continue;
          bool const row_on_row =
              same(before.at, now.at) && before.row_bytes == now.row_bytes && now.row_bytes > 0;
          if (!row_on_row || (before.writes && now.on_the_way)) return false;
        }
    return true;
  }

  // ---- what a block holds ----

  /// The most rows of a tile with which a run's block fits on a multiprocessor, or 0.
  constexpr int rows_in_tile(narrow_run const& run) const {
    int const most = 256 / bytes_of(format);
    for (int rows = most; rows >= most / 2; rows /= 2)
      if (shared_bytes(run, rows) <= narrow_shared_bytes &&
          (!run.is_backward || sums(run, rows) <= most_sums))
        return rows;
    return 0;
  }
  constexpr long shared_bytes(narrow_run const& run, int rows) const {
    int const bytes = bytes_of(format);
    long widest = 0, x = 0, weights = 0;
    for (int i = run.first; i < run.first + run.count; ++i) {
      group const g = at(i);
      int const stride = narrow_stride(main_width(g), bytes);
      widest = stride > widest ? stride : widest;
      if (is_weight(g))
        x = narrow_stride(inner_of(g), bytes) > x ? narrow_stride(inner_of(g), bytes) : x;
      else
        weights += long(narrow_columns(inner_of(g), bytes)) * narrow_stride(g.columns, bytes);
    }
    long const input = narrow_stride(main_width(at(run.first)), bytes),
               none = 64;  // x of one row, if there are none
    return ((input + widest + 2 * x) * rows + weights) * bytes + 2 * none * bytes;
  }
  /// Numbers that a thread keeps in registers: sums of all weights, and those of the product under
  /// way.
  static constexpr int most_sums = 160;
  constexpr int sums(narrow_run const& run, int rows) const {
    int const bytes = bytes_of(format), unit = 64 / bytes;
    int kept = 0, product = 0;
    for (int i = run.first; i < run.first + run.count; ++i) {
      group const g = at(i);
      int const inner = narrow_columns(inner_of(g), bytes),
                columns = narrow_columns(g.columns, bytes);
      warp_grid const w = is_weight(g) ? spread_warps(inner / 16, columns / 16)
                                       : spread_warps(rows / 16, columns / unit);
      int const here = w.down * w.across * (is_weight(g) ? 2 : unit / 8) * 4;
      if (is_weight(g))
        kept += here + w.across * 2;
      else
        product = here > product ? here : product;
    }
    return kept + product;
  }
};

/// The runs of a program of P: kernel source P; Program: a stage's resolved launches.
template <class P, class Program>
constexpr auto find_narrow_runs(Program const& program) {
  auto const group_at = [](int g) { return P::group_at(g); };
  return narrow_finder<Program, decltype(group_at)>{program, group_at, P::samples, product_of<P>()}
      .find();
}

}  // namespace pp::cuda
