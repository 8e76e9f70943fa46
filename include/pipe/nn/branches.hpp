// SPDX-License-Identifier: BSL-1.0
//
// Branches: layers that read the same value, and whose results are joined: added, multiplied, side
// by side, or compared row by row. A branch may begin with a further input or a stashed value
// instead. A Residual is a sum whose other branch does nothing.
#pragma once

#include <type_traits>

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/nn/join.hpp>

namespace pp {

namespace detail {

/// Layers on the same input whose results are joined from left to right. All of it is in one stage,
/// except in a CutInside.
template <class How, class... L>
struct branches : joining<How> {
  using parts = layers<L...>;
  static constexpr bool joins_parts = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    handle const x = b.current();
    operand const outer = b.keep(x.at);
    handle y = x;
    int i = 0;
    auto const branch = [&]<class B>(std::type_identity<B>) {
      if (!b.ok()) return;
      b.set(x);
      b.template part<B>(i);
      if (!b.ok() || !b.needs_numbers()) return;
      handle const z = b.current();
      if (i++ == 0)
        y = z;
      else if (can_join<How>(y.form, z.form))
        y = join_values<How>(b, y, z, is_newer(z, y));
      else
        b.report(wrong::branches_must_have_the_same_shape, y.form, z.form);
    };
    (branch(std::type_identity<L>{}), ...);
    b.keep(outer);
    b.set(y);
  }

 private:
  /// Whether z has been computed after y.
  static constexpr bool is_newer(handle const& z, handle const& y) {
    return z.at.where == space::value && (y.at.where != space::value || z.at.index > y.at.index);
  }
};

}  // namespace detail

/// f(x) + g(x) + ... of layers on the same input, for example a block and its projected shortcut.
/// All of it is in one stage.
///
/// shape: any -> that of every branch; branches that differ are an error at compile time
/// law:   the sum is formed from left to right; dx is the sum over the branches
template <class... L>
struct SumOf : detail::branches<detail::add_both, L...> {};

/// f(x) - g(x) of two layers on the same input. All of it is in one stage.
///
/// shape: any -> that of both branches
template <class F, class G>
struct DifferenceOf : detail::branches<Subtract, F, G> {};

/// f(x) g(x) ... of layers on the same input, element by element: a gate, an attention of one's
/// own, a square. All of it is in one stage.
///
/// shape: any -> that of every branch
/// law:   the product is formed from left to right; the gradient of a branch is that of the product
///        times the other branches, so that their results are stored or computed again
template <class... L>
struct ProductOf : detail::branches<Multiply, L...> {};

/// The results of layers on the same input side by side, along the last extent: Inception's and
/// DenseNet's. All of it is in one stage.
///
/// shape: any -> (..., C), (..., D), ... of the branches -> (..., C + D + ...)
template <class... L>
struct ConcatOf : detail::branches<Concat, L...> {};

/// The dot products of the rows of f(x) and g(x), for example of two towers. All of it is in one
/// stage.
///
/// shape: any -> (..., C) of both branches -> (..., 1)
/// law:   the order of a sum depends on C and the instruction set only
template <class F, class G>
struct DotOf : detail::branches<Dot, F, G> {};

/// The cosines of the angles between the rows of f(x) and g(x). All of it is in one stage.
///
/// shape: any -> (..., C) of both branches -> (..., 1)
template <class F, class G>
struct CosineSimilarityOf : detail::branches<CosineSimilarity, F, G> {};

/// The distances between the rows of f(x) and g(x). All of it is in one stage.
///
/// shape: any -> (..., C) of both branches -> (..., 1)
template <class F, class G>
struct PairwiseDistanceOf : detail::branches<PairwiseDistance, F, G> {};

}  // namespace pp
