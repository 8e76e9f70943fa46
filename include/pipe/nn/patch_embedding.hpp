// SPDX-License-Identifier: BSL-1.0
//
// The first layers of a vision Transformer: the patches of an image as a sequence, and a learned
// row before it.
#pragma once

#include <pipe/base/custom.hpp>
#include <pipe/nn/custom.hpp>
#include <pipe/nn/linear.hpp>

namespace pp {

namespace detail {

/// The patches of an image as rows: a permutation of its numbers.
///
/// shape: x (H, W, C) -> y (H / P * W / P, C * P * P), patches and the numbers of each in the order
///        channel, row, column, as PyTorch's Conv2d stores its weights
template <int P>
struct patches {
  static constexpr int parameters = 0, buffers = 0;

  /// at(i, j) for each number i of an image of shape `in` and its place j among the patches.
  template <class At>
  static void for_each_place(int samples, shape in, At const& at) {
    long const width = in.extent[1], channels = in.extent[2];
    long i = 0;
    for (long s = 0; s < samples; ++s)
      for (long h = 0; h < in.extent[0]; ++h)
        for (long w = 0; w < width; ++w) {
          // Of the first channel, in row h % P and column w % P of the patch.
          long const patch = s * in.extent[0] / P * (width / P) + h / P * (width / P) + w / P;
          long const first = patch * channels * P * P + h % P * P + w % P;
          for (long c = 0; c < channels; ++c) at(i++, first + c * P * P);
        }
  }
  template <class T>
  static void forward(custom_forward<T> const& a) {
    for_each_place(a.samples, a.in, [&](long i, long j) { a.y[j] = a.x[i]; });
  }
  template <class T>
  static void input_gradient(custom_input_gradient<T> const& a) {
    for_each_place(a.samples, a.in, [&](long i, long j) { a.dx[i] = a.dy[j]; });
  }
};

/// A learned row before the rows of x.
///
/// shape: x (T, C), row[C] -> y (T + 1, C)
struct row_before {
  static constexpr shape result(shape in) { return shape(in.rows() + 1, in.columns()); }
  static constexpr int parameters = 1;
  static constexpr custom_parameter parameter(int, shape in) {
    return {1, in.columns(), "weight", {distribution::normal, 0.02f}, false};
  }
  /// at(y, x) for each sample: the offsets of its first number in y and in x.
  template <class At>
  static void for_each_sample(int samples, shape in, At const& at) {
    for (long s = 0; s < samples; ++s) at(s * (in.elements() + in.columns()), s * in.elements());
  }
  template <class T>
  static void forward(custom_forward<T> const& a) {
    long const width = a.in.columns();
    for_each_sample(a.samples, a.in, [&](long y, long x) {
      for (long c = 0; c < width; ++c) a.y[y + c] = a.parameter[0][c];
      for (long i = 0; i < a.in.elements(); ++i) a.y[y + width + i] = a.x[x + i];
    });
  }
  template <class T>
  static void input_gradient(custom_input_gradient<T> const& a) {
    for_each_sample(a.samples, a.in, [&](long y, long x) {
      for (long i = 0; i < a.in.elements(); ++i) a.dx[x + i] = a.dy[y + a.in.columns() + i];
    });
  }
  template <class T>
  static void weight_gradient(custom_weight_gradient<T> const& a) {
    for_each_sample(a.samples, a.in, [&](long y, long) {
      for (long c = 0; c < a.in.columns(); ++c) a.gradient[0][c] += accumulated<T>(a.dy[y + c]);
    });
  }
};

}  // namespace detail

/// The sequence of an image's patches of P x P pixels, each through one affine map: a convolution
/// with stride P. On the host.
///
/// shape:  (H, W, C) -> (H / P * W / P, N), row by row of patches; w[C * P * P, N], b[N]. A weight
///         file has PyTorch's order, [N, C, P, P], as [N, C * P * P]
/// options: NoBias, Init<...>
/// needs:   H and W multiples of P
/// source:  Dosovitskiy et al., An image is worth 16x16 words, 2021
template <int N, int P, class... Options>
struct PatchEmbedding {
  using options = detail::layers<Options...>;
  static constexpr auto takes =
      detail::option_kinds(detail::option_kind::bias, detail::option_kind::initial);
  static constexpr bool has_bias = !(std::same_as<Options, NoBias> || ...);
  using kernels = detail::patches<P>;
  static constexpr int parameters = 0, buffers = 0;

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if (!b.needs_numbers() || !b.needs_positive(shape(N, P))) return;
    detail::handle const x = b.current();
    if (x.form.rank != 3 || x.form.extent[0] % P != 0 || x.form.extent[1] % P != 0)
      return b.report(detail::fault_kind::patches_do_not_divide, shape(P, P), x.form);
    shape const rows(x.form.extent[0] / P * (x.form.extent[1] / P), x.form.extent[2] * P * P);
    b.set(detail::affine(b, b.custom(x, rows, detail::custom_operands{}), N, has_bias,
                         detail::initial_of<Options...>(b.scope().initial)));
  }
};

/// A learned row before the sequence, whose result FirstPosition returns: a place for what the
/// whole sequence is. Initially normal with deviation 0.02. On the host.
///
/// shape:  (T, C) -> (T + 1, C); row[C]
/// source: Devlin et al., BERT, 2019; Dosovitskiy et al., 2021
struct ClassToken : Custom<detail::row_before> {};

}  // namespace pp
