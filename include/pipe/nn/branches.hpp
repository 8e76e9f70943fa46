// SPDX-License-Identifier: BSL-1.0
//
// Branches: layers that read the same value, and whose results are added or stand side by side. A
// Residual is a sum whose other branch does nothing.
#pragma once

#include <type_traits>

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

namespace detail {

/// Describes the layers one after the other, each on the current value; join(b, y, z) makes one
/// value of the results so far and the next.
template <class... L, class Builder, class Join>
constexpr void describe_branches(Builder& b, layers<L...>, Join const& join) {
  handle const x = b.current();
  handle y = x;
  int i = 0;
  auto const branch = [&]<class B>(std::type_identity<B>) {
    if (!b.ok()) return;
    b.set(x);
    b.template part<B>(i);
    if (!b.ok() || !b.needs_numbers()) return;
    y = i++ == 0 ? b.current() : join(b, y, b.current());
  };
  (branch(std::type_identity<L>{}), ...);
  b.set(y);
}

}  // namespace detail

/// f(x) + g(x) + ... of layers on the same input, for example a block and its projected shortcut.
/// All of it is in one stage.
///
/// shape: any -> that of every branch; branches that differ are an error at compile time
/// law:   the sum is formed from left to right; dx is the sum over the branches
template <class... L>
struct SumOf {
  using parts = detail::layers<L...>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    detail::describe_branches(b, parts{}, [](auto& builder, auto const& y, auto const& z) {
      if (!(z.form == y.form))
        builder.report(wrong::branches_must_have_the_same_shape, y.form, z.form);
      return builder.ok() ? builder.add(z, y) : y;
    });
  }
};

/// The results of layers on the same input side by side, along the last extent: Inception's and
/// DenseNet's. All of it is in one stage.
///
/// shape: any -> (..., C), (..., D), ... of the branches -> (..., C + D + ...)
template <class... L>
struct ConcatOf {
  using parts = detail::layers<L...>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    detail::describe_branches(b, parts{}, [](auto& builder, auto const& y, auto const& z) {
      if (!(z.form.with_columns(1) == y.form.with_columns(1)))
        builder.report(wrong::branches_must_have_the_same_shape, y.form, z.form);
      return builder.ok() ? builder.concat(y, z) : y;
    });
  }
};

}  // namespace pp
