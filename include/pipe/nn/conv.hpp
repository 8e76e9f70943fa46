// SPDX-License-Identifier: BSL-1.0
//
// Convolutions of images and sequences, with the channels last. The numbers and the initial values
// are PyTorch's; weights are stored [kernel, channels, filters], and in files in PyTorch's order.
#pragma once

#include <concepts>

#include <pipe/graph/builder.hpp>
#include <pipe/nn/initial.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/window_option.hpp>

namespace pp {

namespace detail {

/// The options that convolutions take.
inline constexpr auto convolution_options =
    option_kinds(option_kind::bias, option_kind::initial, option_kind::stride, option_kind::padding,
                 option_kind::dilation, option_kind::groups);

/// One axis of a convolution over `in` positions.
constexpr convolution_axis axis_of(int in, int kernel, int stride, int padding, int dilation) {
  convolution_axis a{in, 1, kernel, stride, padding, dilation};
  a.out = (in + 2 * padding - a.reach()) / stride + 1;
  return a;
}
/// The same of a transposed convolution of `out` positions: `in` is inferred.
constexpr convolution_axis transposed_axis_of(int out, int kernel, int stride, int padding,
                                              int dilation, int output_padding) {
  convolution_axis a{1, out, kernel, stride, padding, dilation};
  a.in = (out - 1) * stride - 2 * padding + a.reach() + output_padding;
  return a;
}

/// The rows and columns of x as an image: a sequence (T, C) has one row.
constexpr axes image_of(shape form) {
  return form.rank == 3 ? axes{form.extent[0], form.extent[1]} : axes{1, form.extent[0]};
}
/// The shape of an image of x's rank.
constexpr shape image_form(shape x, int vertical, int horizontal, int channels) {
  return x.rank == 3 ? shape(vertical, horizontal, channels) : shape(horizontal, channels);
}

/// The shape of a weight in memory.
template <int Rank>
constexpr shape weight_form(convolution_attributes const& of) {
  int const kernel = of.horizontal.kernel, channels = of.channels / of.groups;
  return Rank == 3 ? shape(of.vertical.kernel, kernel, channels, of.filters)
                   : shape(kernel, channels, of.filters);
}

/// True, or a fault: x has as many extents as the layer needs, and the numbers of its window are in
/// range.
template <class Builder>
constexpr bool needs_window(Builder& b, int rank, axes kernel, window_options const& w,
                            int filters) {
  shape const x = b.current().form;
  if (!b.needs_numbers()) return false;
  if (x.rank != rank) {
    b.report(rank == 3 ? fault_kind::needs_image : fault_kind::needs_sequence, shape{}, x);
    return false;
  }
  if (!b.needs_positive(filters) || !b.needs_positive(shape(kernel.vertical, kernel.horizontal)) ||
      !b.needs_positive(shape(w.stride.vertical, w.stride.horizontal)) ||
      !b.needs_positive(shape(w.dilation.vertical, w.dilation.horizontal)) ||
      !b.needs_positive(w.groups))
    return false;
  if (w.padding.vertical < 0 || w.padding.horizontal < 0)
    b.report(fault_kind::size_not_positive, shape{},
             shape(w.padding.vertical, w.padding.horizontal));
  else if (x.columns() % w.groups != 0 || filters % w.groups != 0)
    b.report(fault_kind::groups_do_not_divide, shape(w.groups), shape(x.columns(), filters));
  return b.ok();
}

/// Adds the weight and the bias of a convolution to whatever `product` makes of the weight.
/// The weight reads `inputs` numbers for each result, and each input reaches `outputs` of them.
template <class Builder, class Product>
constexpr void convolve(Builder& b, shape weight, int inputs, int outputs, int filters,
                        bool has_bias, initial_rules start, Product product) {
  initializer const usual{distribution::uniform, 1.0f / constexpr_sqrt(float(inputs))};
  operand const w =
      b.parameter(weight, start.weights.of(inputs, outputs, usual), true, {"weight", true});
  if (!b.ok()) return;
  handle y = product(w);
  if (has_bias)
    y = b.bias(y,
               b.parameter(1, filters, start.biases.of(inputs, outputs, usual), false, {"bias"}));
  b.set(y);
}

/// Base of Conv1d and Conv2d.
template <int Rank, int Filters, auto Kernel, class... Options>
struct any_conv {
  using options = layers<Options...>;
  static constexpr auto takes = convolution_options;
  static constexpr bool has_bias = !(std::same_as<Options, NoBias> || ...);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    window_options const w = window_options_of<Options...>();
    axes kernel = axes_of(Kernel);
    if constexpr (Rank == 2) kernel.vertical = 1;
    if (!needs_window(b, Rank, kernel, w, Filters)) return;
    handle const x = b.current();
    axes const image = image_of(x.form);
    convolution_attributes of{Rank == 2
                                  ? convolution_axis{}
                                  : axis_of(image.vertical, kernel.vertical, w.stride.vertical,
                                            w.padding.vertical, w.dilation.vertical),
                              axis_of(image.horizontal, kernel.horizontal, w.stride.horizontal,
                                      w.padding.horizontal, w.dilation.horizontal),
                              x.form.columns(), Filters, w.groups};
    for (convolution_axis const a : {of.vertical, of.horizontal})
      if (a.reach() > a.in + 2 * a.padding)
        return b.report(fault_kind::window_too_large, shape(a.reach()),
                        shape(a.in + 2 * a.padding));
    shape const form = image_form(x.form, of.vertical.out, of.horizontal.out, Filters);
    convolve(b, weight_form<Rank>(of), of.inner(), of.taps() * Filters, Filters, has_bias,
             initial_of<Options...>(b.scope().initial), [&](operand weight) {
               return is_pointwise(of) ? b.matmul(x, weight, Filters)
                                       : b.convolution(x, weight, form, of);
             });
  }

 private:
  /// Whether the window is one position that moves over all of them: a product like Linear's.
  static constexpr bool is_pointwise(convolution_attributes const& of) {
    return of.taps() == 1 && of.groups == 1 &&
           of.vertical == convolution_axis{of.vertical.in, of.vertical.in} &&
           of.horizontal == convolution_axis{of.horizontal.in, of.horizontal.in};
  }
};

/// Base of ConvTranspose1d and ConvTranspose2d.
template <int Rank, int Filters, auto Kernel, class... Options>
struct any_conv_transpose {
  using options = layers<Options...>;
  static constexpr auto takes = convolution_options | option_kinds(option_kind::output_padding);
  static constexpr bool has_bias = !(std::same_as<Options, NoBias> || ...);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    window_options const w = window_options_of<Options...>();
    axes kernel = axes_of(Kernel);
    if constexpr (Rank == 2) kernel.vertical = 1;
    if (!needs_window(b, Rank, kernel, w, Filters)) return;
    auto const fits = [](int more, int stride, int dilation) {
      return more >= 0 && (more < stride || more < dilation);
    };
    if (!fits(w.output_padding.horizontal, w.stride.horizontal, w.dilation.horizontal) ||
        (Rank == 3 && !fits(w.output_padding.vertical, w.stride.vertical, w.dilation.vertical)))
      return b.report(fault_kind::output_padding_too_large,
                      shape(w.stride.vertical, w.stride.horizontal),
                      shape(w.output_padding.vertical, w.output_padding.horizontal));
    handle const x = b.current();
    axes const image = image_of(x.form);
    // The convolution whose transpose this is: its filters are the channels here.
    convolution_attributes of{
        Rank == 2 ? convolution_axis{}
                  : transposed_axis_of(image.vertical, kernel.vertical, w.stride.vertical,
                                       w.padding.vertical, w.dilation.vertical,
                                       w.output_padding.vertical),
        transposed_axis_of(image.horizontal, kernel.horizontal, w.stride.horizontal,
                           w.padding.horizontal, w.dilation.horizontal,
                           w.output_padding.horizontal),
        Filters, x.form.columns(), w.groups};
    shape const form = image_form(x.form, of.vertical.in, of.horizontal.in, Filters);
    if (!b.needs_positive(form)) return;
    int const inputs = of.inner(), outputs = of.taps() * of.filters;
    convolve(b, weight_form<Rank>(of), inputs, outputs, Filters, has_bias,
             initial_of<Options...>(b.scope().initial),
             [&](operand weight) { return b.transposed_convolution(x, weight, form, of); });
  }
};

}  // namespace detail

/// A convolution of an image: each filter slides a window over it. As in other libraries a
/// cross-correlation, the kernel is not mirrored.
///
///     y[i, j, n] = b[n] + sum over u, v, c of
///                  x[i * stride - padding + u * dilation, j * ..., c] w[u, v, c, n]
///
/// Kernel: an int, or Axes<vertical, horizontal>.
/// shape:   (H, W, C) -> (Y, X, Filters), Y = floor((H + 2 padding - dilation (kh - 1) - 1) /
///          stride) + 1; w[kh, kw, C / groups, Filters], in files [Filters, C / groups, kh, kw]
/// options: Stride, Padding, Dilation, Groups, NoBias, Init<...>
/// law:     with a kernel of 1, stride 1 and no padding it is a Linear on every pixel; with as many
///          groups as channels each channel has filters of its own
/// errors:  layer_needs_an_image, window_is_larger_than_its_padded_input,
///          groups_do_not_divide_the_channels, size_must_be_positive
/// cost:    forward 2 kh kw C / groups Filters FLOPs per pixel of the result; backward twice that
template <int Filters, detail::window_extents auto Kernel, class... Options>
struct Conv2d : detail::any_conv<3, Filters, Kernel, Options...> {};

/// The same along the positions of a sequence; options of two numbers take the second.
///
/// shape: (T, C) -> (T', Filters); w[k, C / groups, Filters], in files [Filters, C / groups, k]
template <int Filters, int Kernel, class... Options>
struct Conv1d : detail::any_conv<2, Filters, Kernel, Options...> {};

/// The transpose of a convolution, which makes the image larger where the stride is above 1: what
/// Conv2d makes of its result's gradient. Each pixel of x adds its window of weights to y.
///
/// shape:   (Y, X, C) -> (H, W, Filters), H = (Y - 1) stride - 2 padding + dilation (kh - 1) +
///          OutputPadding + 1; w[kh, kw, Filters / groups, C], in files [C, Filters / groups, kh,
///          kw]
/// options: as Conv2d, and OutputPadding
/// law:     y is the input gradient of a Conv2d from y to x with the same weights
/// errors:  as Conv2d, and output_padding_must_be_below_the_stride
/// cost:    forward 2 kh kw C / groups Filters FLOPs per pixel of x; backward twice that
template <int Filters, detail::window_extents auto Kernel, class... Options>
struct ConvTranspose2d : detail::any_conv_transpose<3, Filters, Kernel, Options...> {};

/// The same along the positions of a sequence.
///
/// shape: (T, C) -> (T', Filters)
template <int Filters, int Kernel, class... Options>
struct ConvTranspose1d : detail::any_conv_transpose<2, Filters, Kernel, Options...> {};

}  // namespace pp
