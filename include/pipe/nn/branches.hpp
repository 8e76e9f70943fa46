// SPDX-License-Identifier: BSL-1.0
//
// Branches: layers that read the same value, and whose results are added, subtracted, multiplied or
// stand side by side. A Residual is a sum whose other branch does nothing.
#pragma once

#include <type_traits>

#include <pipe/base/config.hpp>
#include <pipe/graph/builder.hpp>
#include <pipe/graph/layer_option.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

/// An option of Pop: concatenation along the last extent, the current value first. Without an
/// option the values are added.
struct Concat {
  static constexpr auto option = detail::option_kind::join;
};
/// An option of Pop: the current value less the stashed one.
struct Subtract {
  static constexpr auto option = detail::option_kind::join;
};
/// An option of Pop: the product of the values, element by element.
struct Multiply {
  static constexpr auto option = detail::option_kind::join;
};

namespace detail {

/// The sum of two values, which needs no option.
struct add_both {};

/// The formula of a layer that joins values: of one that subtracts, -x.
template <class How>
struct joining {};
template <>
struct joining<Subtract> {
  static constexpr bool derivative_reads_output = false;
  template <class T>
  PIPE_HD static PIPE_INLINE T forward(T x) {
    return -x;
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T derivative(T) {
    return T(-1);
  }
};

/// Whether values of these shapes can be joined: they are equal or, side by side, equal but for the
/// last extent.
template <class How>
constexpr bool can_join(shape const& y, shape const& z) {
  return std::is_same_v<How, Concat> ? z.with_columns(1) == y.with_columns(1) : z == y;
}
/// y and z as one value: y + z, y - z, y z, or z behind y.
///
/// z_is_newer: whether z, not y, has just been computed, so that the op fuses with its kernel
/// needs:      can_join; the layer that is described is a joining<How>
template <class How, class Builder>
constexpr handle join_values(Builder& b, handle const& y, handle const& z, bool z_is_newer) {
  if constexpr (std::is_same_v<How, Concat>)
    return b.concat(y, z);
  else if constexpr (std::is_same_v<How, Subtract>)
    return b.add(b.map(z, joining<How>::derivative_reads_output), y);
  else if constexpr (std::is_same_v<How, Multiply>)
    return z_is_newer ? b.multiply(z, y) : b.multiply(y, z);
  else
    return z_is_newer ? b.add(z, y) : b.add(y, z);
}

/// Layers on the same input whose results are joined from left to right. All of it is in one stage.
template <class How, class... L>
struct branches : joining<How> {
  using parts = layers<L...>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    handle const x = b.current();
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
        y = join_values<How>(b, y, z, true);
      else
        b.report(wrong::branches_must_have_the_same_shape, y.form, z.form);
    };
    (branch(std::type_identity<L>{}), ...);
    b.set(y);
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

}  // namespace pp
