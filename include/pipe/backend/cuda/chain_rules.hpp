// SPDX-License-Identifier: BSL-1.0
//
// The rule by which launches of a program run as one kernel, for passes/chains.hpp. It joins chains
// of narrow layers, and the gradients of a norm, since the sums over rows and the gradient of the
// input read the same operands.
#pragma once

#include <pipe/backend/cuda/narrow_mlp/chain_rule.hpp>
#include <pipe/backend/cuda/rows/row_division.hpp>

namespace pp::cuda {

/// T: the type of values. TakesNarrow: whether narrow layers run together.
///
/// law: a chain run as one kernel gives the bits of its launches one after the other
template <class T, bool TakesNarrow>
struct chain_rules {
  narrow_chain_rule narrow;

  /// Whether a chain may begin with group g: the first gradient of a norm, or a narrow product.
  constexpr bool may_join(detail::group const& g, int samples) const {
    if (g.anchor == op_kind::norm_parameter_gradient) return true;
    return TakesNarrow && narrow.may_join(g, samples);
  }
  /// The longest chain that begins with launch `first`.
  ///
  /// needs: may_join() for the group of `first`
  constexpr detail::launch_chain longest(detail::unplaced_program const& p, int first) const {
    if (p.shape(first).anchor == op_kind::norm_parameter_gradient)
      return detail::launch_chain{first, is_norm_pair(p, first) ? 2 : 1, 0};
    return narrow.longest(p, first);
  }
  // The gradients of a norm pass no value from one to the other: both read operands from memory and
  // store all results.

  constexpr int taken(detail::group const& g) const { return is_narrow(g) ? narrow.taken(g) : -1; }
  constexpr int handed(detail::group const& g) const {
    return is_narrow(g) ? narrow.handed(g) : -1;
  }
  /// Narrow layers alone have optional and recomputed values: the gradients of a norm are stored.
  constexpr bool is_optional(detail::group const& g, int index) const {
    return is_narrow(g) && narrow.is_optional(g, index);
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
  /// Whether launches of group g are in chains of narrow layers: products, and the loss.
  static constexpr bool is_narrow(detail::group const& g) {
    return detail::is_contraction(g.anchor) || detail::is_loss(g.anchor);
  }
  /// Whether launches `first` and the next are the gradients of one norm whose rows a team keeps in
  /// registers.
  static constexpr bool is_norm_pair(detail::unplaced_program const& p, int first) {
    if (first + 1 >= p.size() || p.shape(first + 1).anchor != op_kind::norm_gradient) return false;
    detail::group const sums = p.shape(first), input = p.shape(first + 1);
    return divide_norm_row(sums.columns, int(sizeof(T))).keeps() &&
           p.operand_of(first, sums.in[0]) == p.operand_of(first + 1, input.in[0]) &&
           p.operand_of(first, sums.in[1]) == p.operand_of(first + 1, input.in[1]);
  }
};

/// The rule for a backend whose products of values of type T are computed in `Product`.
template <class T, dtype Product, bool TakesNarrow>
struct chains_of_launches {
  static constexpr bool any = true;
  static constexpr chain_rules<T, TakesNarrow> rule{narrow_chains<T, Product>::rule};
};

}  // namespace pp::cuda
