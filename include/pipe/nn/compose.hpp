// SPDX-License-Identifier: BSL-1.0
//
// Composition of layers.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layers.hpp>

namespace pp {

/// One layer after the other. Opened: the model may be cut between its parts.
template <class... L>
struct Seq {
  using parts = layers<L...>;
  static constexpr int times = 1;
};

/// N copies of the layers, each with parameters of its own. One type however large N is: compile
/// time stays flat.
template <int N, class... L>
struct Repeat {
  using parts = layers<L...>;
  static constexpr int times = N;
  static constexpr bool makes_copies = true;
};

/// x + f(x): the layers must keep the shape. Closed: a stage holds all of it.
template <class... L>
struct Residual {
  using parts = layers<L...>;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    handle const x = b.current();
    b.all(parts{});
    handle const y = b.current();
    if (b.ok() && !(y.form == x.form))
      b.complain(fault_kind::residual_changes_the_shape, x.form, y.form);
    if (b.ok()) b.set(b.add(y, x));
  }
};

/// (T, C) or (H, W, C) -> (T * C): another look at the same numbers, no work at all.
struct Flatten {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    handle x = b.current();
    x.form = shape(x.form.elements());
    x.padding = operand{};
    b.set(x);
  }
};

}  // namespace pp
