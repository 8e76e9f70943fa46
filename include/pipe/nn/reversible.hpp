// SPDX-License-Identifier: BSL-1.0
//
// Reversible blocks: backward makes their inputs again from their outputs, so that the memory of
// activations does not grow with depth.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/graph/layers.hpp>
#include <pipe/nn/join.hpp>

namespace pp {

/// Two residuals on the halves (x1, x2) of a row: y1 = x1 + F(x2), y2 = x2 + G(y1). Backward
/// computes x2 = y2 - G(y1) and x1 = y1 - F(x2), and stores nothing in between: of a sequence of
/// such blocks only the last result is stored. All of a block is in one stage.
///
///     Repeat<100, Reversible<Seq<LayerNorm, Attention<4>>, Seq<LayerNorm, Linear<256>, GELUTanh,
///                                                              Linear<64>>>>
///
/// shape:  (..., 2 C) -> the same; F and G (..., C) -> (..., C)
/// law:    gradients agree with those of stored values within rounding, as what is made again does;
///         they are the same bits for every cut and schedule
/// needs:  an even width. Inside another layer, as a Residual, values are stored
/// cost:   F and G run once more
/// source: Gomez et al., The reversible residual network, 2017
template <class F, class G>
struct Reversible : detail::negative {
  using parts = detail::layers<F, G>;

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle const x = b.current();
    int const half = x.form.columns() / 2;
    if (x.form.columns() % 2 != 0)
      return b.report(wrong::reversible_needs_an_even_width, sample_shape(x.form.columns()));
    detail::handle const x2 = b.slice(x, half, half), x1 = b.slice(x, 0, half);
    detail::handle const y1 = residual<F>(b, 0, x2, x1);
    b.middle_of_reversible();
    detail::handle const y2 = residual<G>(b, 1, y1, x2);
    if (b.ok()) b.set(b.concat(y1, y2));
  }

 private:
  /// L(x) + z, where L is part number i.
  template <class L, class Builder>
  static constexpr detail::handle residual(Builder& b, int i, detail::handle x, detail::handle z) {
    if (!b.ok()) return z;
    b.set(x);
    b.template part<L>(i);
    detail::handle const y = b.current();
    if (b.ok() && !(y.form == z.form))
      b.report(wrong::residual_must_keep_the_shape, z.form, y.form);
    return b.ok() ? b.add(y, z) : z;
  }
};

}  // namespace pp
