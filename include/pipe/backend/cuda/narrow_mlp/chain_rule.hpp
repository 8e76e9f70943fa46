// SPDX-License-Identifier: BSL-1.0
//
// The rule by which launches of a program run as one kernel: chains of narrow layers, forward, or
// the gradients of their inputs and weights. A row of the batch stays in one block, so launches of
// a chain may share only operands that all of them read, and operands that each launch reads and
// writes row by row.
#pragma once

#include <pipe/backend/cuda/matmul/contraction_plan.hpp>
#include <pipe/backend/cuda/narrow_mlp/geometry.hpp>
#include <pipe/base/static_vector.hpp>
#include <pipe/passes/chains.hpp>

namespace pp::cuda {

/// An operand of a launch. by_rows: the operand has a row for each row of the batch.
struct narrow_access {
  detail::operand what;
  bool by_rows = false, writes = false,
       on_the_way = false;  ///< read before the earlier launches have ended
};
using narrow_accesses = detail::static_vector<narrow_access, detail::group::max_operands>;

/// The rule of passes/chains.hpp for narrow layers whose products are computed in `format`; the
/// form of a chain is the number of rows of a tile.
///
/// law: launches of a chain, run as one kernel, compute the same bits as one after the other
struct narrow_chain_rule {
  product_format format = product_format::fp32;

  /// Whether a group may be in a chain: a product without prologue, with few columns and few
  /// addends.
  constexpr bool may_join(detail::group const& g, int samples) const {
    bool const product = g.anchor == op_kind::matmul || is_input(g);
    if (!(product || is_weight(g)) || inner_of(g) > narrow_width || g.columns > narrow_width)
      return false;
    if (is_weight(g)) {
      for (detail::pointwise_op const& s : g.prologue)
        if (s.kind != op_kind::bias_gradient) return false;
      return g.prologue.size() < 2;
    }
    extent const rows = extent(g.rows) * samples;
    return g.prologue.empty() && plan_for({rows, g.columns, inner_of(g)}, format).splits == 1;
  }
  /// The longest chain that begins with launch `first`.
  ///
  /// needs: may_join() of launch `first`
  constexpr detail::launch_chain longest(detail::unplaced_program const& p, int first) const {
    detail::launch_chain run{first, 1, 0}, good = run;
    bool const is_backward = p.shape(first).anchor != op_kind::matmul;
    int levels = is_input(p.shape(first)) ? 1 : 0;  // that are complete
    detail::operand now = main_operand(p, first);
    int width = main_width(p.shape(first));
    for (int i = first;;) {
      detail::group const g = p.shape(i);
      if (!is_weight(g)) now = p.operand_of(i, handed(g)), width = g.columns;
      run.form = rows_in_tile(p, run, is_backward);
      if (run.form == 0) break;
      // a gradient of a weight alone, or with the gradient of the same layer's input, passes
      // nothing on
      if (run.count > 1 && (!is_backward || levels > 1 || (levels == 1 && is_weight(g))))
        good = run;
      if (++i == p.size() || run.count == detail::chain_kernel::most || now == detail::operand{})
        break;
      detail::group const next = p.shape(i);
      if (!may_join(next, p.samples) || (next.anchor != op_kind::matmul) != is_backward ||
          next.rows != g.rows || main_operand(p, i) != now || main_width(next) != width)
        break;
      if (is_weight(next) && is_weight(g)) break;
      if (!shares_well(p, first, i)) break;
      levels += is_input(next);
      ++run.count;
    }
    return good;
  }
  /// The index of a launch's main operand: a matmul's rows, or a gradient's dy.
  constexpr int taken(detail::group const& g) const { return g.in[is_weight(g) ? 1 : 0]; }
  /// The index of a launch's finished rows, which the next launch reads; -1: none.
  constexpr int handed(detail::group const& g) const {
    if (is_weight(g)) return -1;
    return g.epilogue.empty() ? g.out[0] : g.epilogue.back().store;
  }
  /// Whether an operand is stored only if it has a place in memory: rows, which the chain may pass
  /// on.
  constexpr bool is_optional(detail::group const& g, int index) const {
    if (is_weight(g)) return false;
    bool stores = index == g.out[0];
    for (detail::pointwise_op const& s : g.epilogue) stores = stores || index == s.store;
    return stores;
  }

  /// The forward layers whose results a chain of gradients recomputes, if the chain has the
  /// gradient of every layer's weight: then the chain reads the input of the first layer alone.
  constexpr detail::recomputed_launches recomputed(detail::unplaced_program const& forward,
                                                   detail::view<detail::launch_chain> chains,
                                                   detail::unplaced_program const& backward,
                                                   detail::launch_chain const& b,
                                                   bool may_take_loss) const {
    // By layer, from the first on: the launches of its weight's and its input's gradient, or -1.
    struct gradients {
      int weight = -1, input = -1;
    };
    detail::static_vector<gradients, detail::chain_kernel::most> layers;
    for (int i = b.first + b.count - 1; i >= b.first; --i)
      if (is_input(backward.shape(i)))
        layers.push_back({-1, i});
      else if (!layers.empty() && layers.back().weight < 0)
        layers.back().weight = i;
      else
        layers.push_back({i, -1});
    int const count = int(layers.size());
    if (count < 2 || b.count + count - 1 > detail::chain_kernel::most) return {};
    for (gradients const& of : layers)
      if (of.weight < 0) return {};
    auto const x_of = [&](int layer) {
      return backward.operand_of(layers[layer].weight, backward.shape(layers[layer].weight).in[0]);
    };
    int first = -1;
    for (detail::launch_chain const& f : chains)
      for (int i = f.first; i + count - 1 < f.first + f.count; ++i)
        if (forward.shape(i).anchor == op_kind::matmul && main_operand(forward, i) == x_of(0))
          first = i;
    if (first < 0) return {};
    int kept = 0;  // results that derivatives read, and that are not passed on
    for (int k = 0; k + 1 < count; ++k) {
      detail::operand derived;
      bool is_kept = false;
      if (forward.operand_of(first + k, handed(forward.shape(first + k))) != x_of(k + 1) ||
          !may_recompute(forward, first + k, derived, is_kept) ||
          !derives_from(backward, layers[k + 1].input, derived))
        return {};
      kept += is_kept;
    }
    for (int k = 0; k < count; ++k)
      if (layers[k].input >= 0 &&
          !(backward.shape(layers[k].input).attributes.contraction().is_transposed &&
            (k + 1 == count ||
             forward.operand_of(first + k, forward.shape(first + k).in[1]).index ==
                 backward.operand_of(layers[k].input, backward.shape(layers[k].input).in[1])
                     .index)))
        return {};
    bool const takes_loss =
        may_take_loss && is_before_loss(forward, chains, first, count, backward, b);
    int const most = 256 / bytes_of(format);
    for (int rows = most; rows >= 16 && rows >= most / 4; rows /= 2)
      if (shared_bytes_recomputing(backward, b, rows, count, kept) <= narrow_shared_bytes &&
          sums(backward, b, rows, 2) <= most_sums)
        return {first, takes_loss ? count + 1 : count - 1, rows, takes_loss};
    return {};
  }

 private:
  /// Whether launch i of forward may be recomputed. derived: the one result from which the
  /// derivative of the launch's epilogue can be computed; is_kept: whether this is another result
  /// than the finished rows.
  constexpr bool may_recompute(detail::unplaced_program const& forward, int i,
                               detail::operand& derived, bool& is_kept) const {
    detail::group const g = forward.shape(i);
    int stored = handed(g), others = 0;
    auto const other = [&](int index) {
      if (index >= 0 && index != handed(g)) stored = index, ++others;
    };
    other(g.out[0]);
    for (detail::pointwise_op const& s : g.epilogue) {
      if (s.kind == op_kind::add || s.kind == op_kind::multiply || s.kind == op_kind::prelu)
        return false;
      other(s.store);
    }
    derived = forward.operand_of(i, stored);
    is_kept = others == 1;
    return others < 2 && !g.attributes.contraction().is_transposed;
  }
  /// Whether the gradient of an input, launch i, reads only `derived` of forward.
  static constexpr bool derives_from(detail::unplaced_program const& backward, int i,
                                     detail::operand const& derived) {
    int derivatives = 0;
    for (detail::pointwise_op const& s : backward.shape(i).epilogue)
      if (s.kind == op_kind::map_gradient) {
        if (backward.operand_of(i, s.operand) != derived) return false;
        ++derivatives;
      }
    return derivatives < 2;
  }
  /// Whether the `count` layers from launch `first` of forward on are a chain, only the loss reads
  /// the chain's result, backward begins with chain b, and only b reads the other results of the
  /// layers and of the loss.
  constexpr bool is_before_loss(detail::unplaced_program const& forward,
                                detail::view<detail::launch_chain> chains, int first, int count,
                                detail::unplaced_program const& backward,
                                detail::launch_chain const& b) const {
    int const loss = first + count, last = loss - 1;
    if (forward.size() != loss + 1 || b.count + count + 1 > detail::chain_kernel::most)
      return false;
    detail::group const g = forward.shape(loss), before = forward.shape(last);
    bool is_chain = false;
    for (detail::launch_chain const& f : chains)
      is_chain = is_chain || (f.first == first && f.count == count);
    detail::operand derived;
    bool is_kept = false;
    if (!is_chain || !detail::is_loss(g.anchor) || g.anchor == op_kind::row_loss ||
        g.anchor == op_kind::contrast || !g.prologue.empty() || !g.epilogue.empty() ||
        g.rows != before.rows || g.columns != before.columns || handed(before) < 0 ||
        main_operand(forward, loss) != forward.operand_of(last, handed(before)) ||
        main_operand(backward, b.first) != forward.operand_of(loss, handed(g)) ||
        !may_recompute(forward, last, derived, is_kept) || is_kept)
      return false;
    for (int i = 0; i < backward.size(); ++i) {
      if (i >= b.first && i < b.first + b.count) continue;
      for (int index = 0; index < backward.segment_of(i).operands; ++index)
        for (int k = first; k <= loss; ++k)
          for (int of = 0; of < forward.segment_of(k).operands; ++of)
            if (is_optional(forward.shape(k), of) &&
                forward.operand_of(k, of) == backward.operand_of(i, index))
              return false;
    }
    return true;
  }
  static constexpr bool is_weight(detail::group const& g) {
    return g.anchor == op_kind::matmul_weight_gradient;
  }
  static constexpr bool is_input(detail::group const& g) {
    return g.anchor == op_kind::matmul_input_gradient;
  }
  static constexpr int inner_of(detail::group const& g) { return g.attributes.contraction().inner; }
  constexpr detail::operand main_operand(detail::unplaced_program const& p, int i) const {
    return p.operand_of(i, taken(p.shape(i)));
  }
  static constexpr int main_width(detail::group const& g) {
    return is_weight(g) ? g.columns : inner_of(g);
  }

  // ---- operands that launches share ----

  static constexpr narrow_accesses accesses(detail::unplaced_program const& p, int i,
                                            bool is_first) {
    detail::group const g = p.shape(i);
    narrow_accesses all;
    auto const by_rows = [&](int index, bool writes, bool on_the_way = false) {
      if (index >= 0) all.push_back({p.operand_of(i, index), true, writes, on_the_way});
    };
    auto const whole = [&](int index, bool writes) {
      if (index >= 0) all.push_back({p.operand_of(i, index), false, writes, !writes});
    };
    if (is_weight(g)) {
      by_rows(g.in[0], false, true);
      if (is_first) by_rows(g.in[1], false, true);
      whole(g.out[0], true);
      for (detail::pointwise_op const& s : g.prologue) whole(s.store, true);
      return all;
    }
    if (is_first) by_rows(g.in[0], false, true);
    whole(g.in[1], false);
    by_rows(g.out[0], true);
    for (detail::pointwise_op const& s : g.epilogue) {
      if (detail::has_third(s.kind)) whole(s.operand + 1, false);
      if (s.kind == op_kind::bias || s.kind == op_kind::row_bias || s.kind == op_kind::prelu)
        whole(s.operand, false);
      else if (s.kind != op_kind::dropout)
        by_rows(s.operand, false);
      by_rows(s.store, true);
    }
    return all;
  }
  /// Whether launch i may run in one kernel with the launches from `first` on.
  constexpr bool shares_well(detail::unplaced_program const& p, int first, int i) const {
    narrow_accesses const mine = accesses(p, i, false);
    for (int k = first; k < i; ++k)
      for (narrow_access const& before : accesses(p, k, k == first))
        for (narrow_access const& now : mine) {
          if (!(before.writes || now.writes) || before.what != now.what) continue;
          if (!before.by_rows || !now.by_rows || (before.writes && now.on_the_way)) return false;
        }
    return true;
  }

  // ---- the memory of a block ----

  /// The largest number of rows of a tile for which a block's shared memory and, backward, its
  /// registers suffice; 0: none.
  constexpr int rows_in_tile(detail::unplaced_program const& p, detail::launch_chain const& run,
                             bool is_backward) const {
    int const most = 256 / bytes_of(format);
    for (int rows = most; rows >= most / 2; rows /= 2)
      if (shared_bytes(p, run, rows) <= narrow_shared_bytes &&
          (!is_backward || sums(p, run, rows, 16 / bytes_of(format)) <= most_sums))
        return rows;
    return 0;
  }
  constexpr long shared_bytes(detail::unplaced_program const& p, detail::launch_chain const& run,
                              int rows) const {
    int const bytes = bytes_of(format);
    long widest = 0, x = 0, weights = 0;
    for (int i = run.first; i < run.first + run.count; ++i) {
      detail::group const g = p.shape(i);
      int const stride = narrow_stride(main_width(g), bytes);
      widest = stride > widest ? stride : widest;
      if (is_weight(g))
        x = narrow_stride(inner_of(g), bytes) > x ? narrow_stride(inner_of(g), bytes) : x;
      else
        weights += g.attributes.contraction().is_transposed
                       ? long(narrow_columns(g.columns, bytes)) * narrow_stride(inner_of(g), bytes)
                       : long(narrow_columns(inner_of(g), bytes)) * narrow_stride(g.columns, bytes);
    }
    long const input = narrow_stride(main_width(p.shape(run.first)), bytes),
               none = 64;  // x of one row, if no layer has x
    return ((input + widest + 2 * x) * rows + weights) * bytes + 2 * none * bytes;
  }
  /// Bytes of shared memory of a chain of gradients of `layers` layers that recomputes the inputs
  /// of the layers, and `kept` further results: all of them are in shared memory together.
  constexpr long shared_bytes_recomputing(detail::unplaced_program const& p,
                                          detail::launch_chain const& b, int rows, int layers,
                                          int kept) const {
    int const bytes = bytes_of(format);
    long widest = 0, weights = 0;
    for (int i = b.first; i < b.first + b.count; ++i) {
      detail::group const g = p.shape(i);
      if (!is_weight(g)) continue;
      int const stride = narrow_stride(inner_of(g), bytes);
      widest = stride > widest ? stride : widest;
      weights += long(narrow_columns(inner_of(g), bytes)) * narrow_stride(g.columns, bytes);
    }
    long const input = narrow_stride(main_width(p.shape(b.first)), bytes);
    return ((input + (narrow_tiles(layers) + kept) * widest) * rows + weights) * bytes;
  }
  /// The number of sums that a thread keeps in registers: of all weights, and of the current
  /// product, of which the thread finishes `each` elements together.
  static constexpr int most_sums = 160;
  constexpr int sums(detail::unplaced_program const& p, detail::launch_chain const& run, int rows,
                     int each) const {
    int const bytes = bytes_of(format), unit = each == 2 ? 16 : 4 * each;
    int kept = 0, product = 0;
    for (int i = run.first; i < run.first + run.count; ++i) {
      detail::group const g = p.shape(i);
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

/// The rule as an option of a backend: products of values of type T are computed in `Product`.
template <class T, dtype Product>
struct narrow_chains {
  struct numbers {
    using element = T;
    static constexpr dtype product = Product;
  };
  static constexpr bool any = true;
  static constexpr narrow_chain_rule rule{product_of<numbers>()};
};

}  // namespace pp::cuda
