// SPDX-License-Identifier: BSL-1.0
//
// The first layers of a vision Transformer: the patches of an image as a sequence, and a learned
// row before it.
#pragma once

#include <pipe/nn/images/conv.hpp>

namespace pp {

/// The sequence of an image's patches of P x P pixels, each through one affine map.
///
/// shape:   (H, W, C) -> (H / P * W / P, N), row by row of patches; w[P, P, C, N], in files
///          [N, C, P, P], b[N]
/// options: NoBias, Init<...>
/// law:     Conv2d<N, P, Stride<P>>, Reshape<Rest, N>
/// needs:   H and W multiples of P
/// source:  Dosovitskiy et al., An image is worth 16x16 words, 2021
template <int N, int P, class... Options>
struct PatchEmbedding {
  using options = detail::layers<Options...>;
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::bias, detail::option_kind::initial);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers() || !b.needs_positive(sample_shape(N, P))) return;
    sample_shape const x = b.current().form;
    if (x.rank == 3 && (x.extent[0] % P != 0 || x.extent[1] % P != 0))
      return b.report(wrong::patches_do_not_divide_the_image, sample_shape(P, P), x);
    Conv2d<N, P, Stride<P>, Options...>::describe(b);
    if (!b.ok()) return;
    detail::handle y = b.current();
    y.form = sample_shape(y.form.rows(), y.form.columns());
    b.set(y);
  }
};

/// A learned row before the sequence, whose result FirstPosition returns: a place for what the
/// whole sequence is. Initially normal with deviation 0.02.
///
/// shape:  (T, C) -> (T + 1, C); row[C]
/// source: Devlin et al., BERT, 2019; Dosovitskiy et al., 2021
struct ClassToken {
  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers()) return;
    detail::handle const x = b.current();
    detail::operand const row =
        b.parameter(1, x.form.columns(), {distribution::normal, 0.02f}, false, {"weight"});
    b.set(b.row_before(row, x));
  }
};

}  // namespace pp
