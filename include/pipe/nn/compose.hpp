// SPDX-License-Identifier: BSL-1.0
//
// Composition of layers: sequences, repetitions, residual connections, and other
// shapes of the same numbers.
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

/// x + f(x), where f is the layers in sequence and keeps the shape. All of it is in one stage,
/// except in a CutInside.
///
/// shape: any -> the same; a layer list that changes it is an error at compile time
/// law:   backward dx = dy + df(dy): the gradient of x is the sum of both ways
template <class... L>
struct Residual {
  using parts = detail::layers<L...>;
  static constexpr bool joins_parts = true;
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle const x = b.current();
    detail::operand const outer = b.keep(x.at);
    b.all(parts{});
    b.keep(outer);
    detail::handle const y = b.current();
    if (b.ok() && !(y.form == x.form))
      b.report(wrong::residual_must_keep_the_shape, x.form, y.form);
    if (b.ok()) b.set(b.add(y, x));
  }
};

/// x itself, as a branch: `ConcatOf<Identity, Named<"more", Input<4>>>`.
///
/// shape: any -> the same, at no cost
struct Identity {
  template <class Builder>
  static constexpr void describe(Builder&) {}
};

/// (T, C) or (H, W, C) -> (T * C): the same numbers in another shape, at no cost.
struct Flatten {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle x = b.current();
    x.form = sample_shape(x.form.elements());
    x.padding = detail::operand{};
    x.axis = 0;
    b.set(x);
  }
};

/// (H, W, C) -> (C * H * W): the numbers of channel 0 first, as PyTorch flattens an image. One copy
/// forward and one backward; only for weights of a Linear behind it that come from PyTorch.
///
/// shape: any of two extents or more -> (elements)
struct FlattenChannelsFirst {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle x = b.current();
    if (x.form.rows() > 1 && x.form.columns() > 1) x = b.transpose(x);
    x.form = sample_shape(x.form.elements());
    x.padding = detail::operand{};
    x.axis = 0;
    b.set(x);
  }
};

/// The extent of a Reshape that is inferred from the others.
inline constexpr int Rest = -1;

/// The same numbers in the same order as another shape, at no cost. At most one extent is `Rest`.
///
/// shape: any -> (Extents...), one to four of them
/// error: reshape_must_keep_the_number_of_elements
template <int... Extents>
struct Reshape {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    static_assert(sizeof...(Extents) >= 1 && sizeof...(Extents) <= sample_shape::max_rank,
                  "a shape has one to four extents");
    if (!b.needs_numbers()) return;
    detail::handle x = b.current();
    sample_shape to(Extents...);
    long const elements = x.form.elements();
    int* rest = nullptr;
    for (int i = 0; i < to.rank; ++i)
      if (to.extent[i] == Rest && rest == nullptr) {
        rest = &to.extent[i];
        *rest = 1;
      }
    if (!b.needs_positive(to) || !b.needs_room(to, detail::most_numbers)) return;
    if (rest != nullptr) *rest = int(elements / to.elements());
    if (to.elements() != elements)
      return b.report(wrong::reshape_must_keep_the_number_of_elements, sample_shape(int(elements)),
                      sample_shape(Extents...));
    if (to.rows() != x.form.rows()) {
      x.padding = detail::operand{};
      x.axis = 0;
    }
    x.form = to;
    b.set(x);
  }
};

}  // namespace pp
