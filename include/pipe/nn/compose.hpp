// SPDX-License-Identifier: BSL-1.0
//
// Composition of layers: sequences, repetitions, residual connections, and flattening.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

/// One layer after the other. The model may be cut between them.
template <class... L>
struct Seq {
  using parts = detail::layers<L...>;
  static constexpr int times = 1;
};

/// N copies of the layers in sequence, each with parameters of its own. The model may be cut
/// between them. A single type for any N, so that compile time does not grow with it.
template <int N, class... L>
struct Repeat {
  using parts = detail::layers<L...>;
  static constexpr int times = N;
  static constexpr bool makes_copies = true;
};

/// x + f(x), where f is the layers in sequence and keeps the shape. All of it is in one stage.
///
/// shape: any -> the same; a layer list that changes it is an error at compile time
/// law:   backward dx = dy + df(dy): the gradient of x is the sum of both ways
template <class... L>
struct Residual {
  using parts = detail::layers<L...>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle const x = b.current();
    b.all(parts{});
    detail::handle const y = b.current();
    if (b.ok() && !(y.form == x.form))
      b.report(detail::fault_kind::residual_changes_the_shape, x.form, y.form);
    if (b.ok()) b.set(b.add(y, x));
  }
};

/// (T, C) or (H, W, C) -> (T * C): the same numbers in another shape, at no cost.
struct Flatten {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle x = b.current();
    x.form = shape(x.form.elements());
    x.padding = detail::operand{};
    b.set(x);
  }
};

}  // namespace pp
