// SPDX-License-Identifier: BSL-1.0
//
// The rule by which launches of a program run as one kernel, for passes/chains.hpp: chains of
// narrow layers, and the gradients of a norm, of which the sums over rows read what the gradient of
// the input reads.
#pragma once

#include <pipe/backend/cuda/narrow_mlp/chain_rule.hpp>
#include <pipe/backend/cuda/rows/row_division.hpp>

namespace pp::cuda {

/// T: of values. TakesNarrow: whether narrow layers run together.
///
/// law: launches of a chain, run as one kernel, make the bits that they make one after the other
template <class T, bool TakesNarrow>
struct chain_rules {
  narrow_chain_rule narrow;

  /// Whether a group may be in a chain: the first of a norm's gradients, which is looked at
  /// together with the launch behind it, or a narrow product.
  constexpr bool may_join(detail::group const& g, int samples) const {
    if (g.anchor == op_kind::norm_parameter_gradient) return true;
    return TakesNarrow && narrow.may_join(g, samples);
  }
  /// needs: may_join() of the first
  constexpr detail::launch_chain longest(detail::unplaced_program const& p, int first) const {
    if (p.shape(first).anchor == op_kind::norm_parameter_gradient)
      return detail::launch_chain{first, is_norm_pair(p, first) ? 2 : 1, 0};
    return narrow.longest(p, first);
  }
  // Gradients of a norm hand nothing on: both read from memory, and all results are stored.

  constexpr int taken(detail::group const& g) const { return is_narrow(g) ? narrow.taken(g) : -1; }
  constexpr int handed(detail::group const& g) const {
    return is_narrow(g) ? narrow.handed(g) : -1;
  }
  /// A norm's gradients are all stored, and recompute nothing: only narrow layers hand values on.
  constexpr bool is_optional(detail::group const& g, int slot) const {
    return is_narrow(g) && narrow.is_optional(g, slot);
  }
  constexpr detail::recomputed_launches recomputed(detail::unplaced_program const& forward,
                                                   detail::view<detail::launch_chain> of_forward,
                                                   detail::unplaced_program const& backward,
                                                   detail::launch_chain const& c,
                                                   bool may_take_loss) const {
    if (backward.shape(c.first).anchor == op_kind::norm_parameter_gradient) return {};
    return narrow.recomputed(forward, of_forward, backward, c, may_take_loss);
  }

 private:
  /// Whether launches of the group are in chains of narrow layers, with or without the loss.
  static constexpr bool is_narrow(detail::group const& g) {
    return detail::is_contraction(g.anchor) || detail::is_loss(g.anchor);
  }
  /// Whether launches `first` and the next are the gradients of one norm, whose rows a team keeps.
  static constexpr bool is_norm_pair(detail::unplaced_program const& p, int first) {
    if (first + 1 >= p.size() || p.shape(first + 1).anchor != op_kind::norm_gradient) return false;
    detail::group const sums = p.shape(first), input = p.shape(first + 1);
    return divide_norm_row(sums.columns, int(sizeof(T))).keeps() &&
           p.operand_of(first, sums.in[0]) == p.operand_of(first + 1, input.in[0]) &&
           p.operand_of(first, sums.in[1]) == p.operand_of(first + 1, input.in[1]);
  }
};

/// The rule as the option of a backend: products of values of type T are computed in `Product`.
template <class T, dtype Product, bool TakesNarrow>
struct chains_of_launches {
  static constexpr bool any = true;
  static constexpr chain_rules<T, TakesNarrow> rule{narrow_chains<T, Product>::rule};
};

}  // namespace pp::cuda
