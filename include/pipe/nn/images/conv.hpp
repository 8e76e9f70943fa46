// SPDX-License-Identifier: BSL-1.0
//
// Convolutions of images and sequences, with the channels last. The numbers and the initial values
// are PyTorch's; weights are stored [kernel, channels, filters], and in files in PyTorch's order.
#pragma once

#include <initializer_list>
#include <type_traits>

#include <pipe/graph/builder.hpp>
#include <pipe/nn/initial.hpp>
#include <pipe/nn/linear.hpp>
#include <pipe/nn/images/window.hpp>

namespace pp {

namespace detail {

/// The options that convolutions take.
inline constexpr auto kinds_of_convolution_option =
    option_kinds(option_kind::bias, option_kind::initial, option_kind::stride, option_kind::padding,
                 option_kind::dilation, option_kind::groups);

/// What the options of a convolution say beside its window.
struct convolution_options {
  int groups = 1, output_padding[2]{0, 0};
};
template <class O>
constexpr void join_convolution([[maybe_unused]] convolution_options& c) {
  if constexpr (requires { O::join(c); }) O::join(c);
}

/// The shape of a weight in memory, and of an image or a sequence.
template <int Axes>
constexpr sample_shape weight_form(convolution_attributes const& of) {
  int const kernel = of.horizontal.kernel, channels = of.channels / of.groups;
  return Axes == 2 ? sample_shape(of.vertical.kernel, kernel, channels, of.filters)
                   : sample_shape(kernel, channels, of.filters);
}
template <int Axes>
constexpr sample_shape image_form(int high, int wide, int channels) {
  return Axes == 2 ? sample_shape(high, wide, channels) : sample_shape(wide, channels);
}

/// The window of a convolution over `Axes` axes: its stride is 1 unless an option says otherwise. A
/// sequence is an image of one row, and the numbers of its axis are those of the columns.
template <int Axes, auto Kernel, class... Options>
constexpr window convolution_window() {
  window w = window_of(Kernel);
  w.stride[0] = w.stride[1] = 1;
  (join_window<Options>(w), ...);
  if (Axes == 2) return w;
  return window{{1, w.size[0]}, {1, w.stride[0]}, {0, w.padding[0]}, {1, w.dilation[0]}};
}
template <int Axes, class... Options>
constexpr convolution_options convolution_options_of() {
  convolution_options c;
  (join_convolution<Options>(c), ...);
  if (Axes == 2) return c;
  return convolution_options{c.groups, {0, c.output_padding[0]}};
}

/// True, or a fault: x has as many extents as the layer needs, and the numbers of its window and
/// its groups are in range.
template <int Axes, class Builder>
constexpr bool needs_convolvable(Builder& b, window const& w, int groups, int filters) {
  if (!b.needs_numbers()) return false;
  sample_shape const x = b.current().form;
  if (x.rank != Axes + 1)
    b.report(Axes == 2 ? wrong::layer_needs_an_image_of_three_extents
                       : wrong::layer_needs_a_sequence_of_two_extents,
             x);
  if (!b.ok() || !b.needs_positive(filters) || !b.needs_positive(groups) ||
      !b.needs_positive(sample_shape(w.size[0], w.size[1])) ||
      !b.needs_positive(sample_shape(w.stride[0], w.stride[1])) ||
      !b.needs_positive(sample_shape(w.dilation[0], w.dilation[1])) ||
      !b.needs_not_negative(sample_shape(w.padding[0], w.padding[1])))
    return false;
  if (x.columns() % groups != 0 || filters % groups != 0)
    b.report(wrong::groups_do_not_divide_the_channels, sample_shape(groups),
             sample_shape(x.columns(), filters));
  return b.ok();
}

/// Axis i of two of x: a sequence (T, C) is an image of one row.
constexpr int extent_of(sample_shape x, int i) {
  return x.rank == 3 ? x.extent[i] : i == 0 ? 1 : x.extent[0];
}
/// An axis of the convolution of that window over `in` positions.
constexpr convolution_axis axis_of(int in, window const& w, int i) {
  convolution_axis a{in, 1, w.size[i], w.stride[i], w.padding[i], w.dilation[i]};
  a.out = (in + 2 * a.padding - a.reach()) / a.stride + 1;
  return a;
}
/// An axis of the convolution that makes `out` positions of those of a transposed one.
constexpr convolution_axis transposed_axis_of(int out, window const& w, int i, int more) {
  convolution_axis a{1, out, w.size[i], w.stride[i], w.padding[i], w.dilation[i]};
  a.in = (out - 1) * a.stride - 2 * a.padding + a.reach() + more;
  return a;
}

/// Adds the weight and the bias of a convolution to whatever `product` makes of the weight.
/// The weight reads `inputs` numbers for each result, and each input reaches `outputs` of them.
template <class Builder, class Product>
constexpr void convolve(Builder& b, sample_shape weight, int inputs, int outputs, int filters,
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
template <int Axes, int Filters, auto Kernel, class... Options>
struct any_conv {
  using options = layers<Options...>;
  static constexpr auto takes = kinds_of_convolution_option;
  static constexpr bool has_bias = !(std::is_same_v<Options, NoBias> || ...);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    window const w = convolution_window<Axes, Kernel, Options...>();
    int const groups = convolution_options_of<Axes, Options...>().groups;
    if (!needs_convolvable<Axes>(b, w, groups, Filters)) return;
    handle const x = b.current();
    convolution_attributes const of{axis_of(extent_of(x.form, 0), w, 0),
                                    axis_of(extent_of(x.form, 1), w, 1), x.form.columns(), Filters,
                                    groups};
    for (convolution_axis const a : {of.vertical, of.horizontal})
      if (a.reach() > a.in + 2 * a.padding)
        return b.report(wrong::window_is_larger_than_its_padded_input, sample_shape(a.reach()),
                        sample_shape(a.in + 2 * a.padding));
    sample_shape const form = image_form<Axes>(of.vertical.out, of.horizontal.out, Filters);
    convolve(b, weight_form<Axes>(of), of.inner(), of.taps() * Filters, Filters, has_bias,
             initial_of<Options...>(b.scope().initial), [&](operand weight) {
               return is_product(of) ? b.matmul(x, weight, Filters)
                                     : b.convolution(x, weight, form, of);
             });
  }

 private:
  /// Whether the window is one position that moves over all of them: a product like Linear's.
  static constexpr bool is_product(convolution_attributes const& of) {
    return of.taps() == 1 && of.groups == 1 && of.vertical.in == of.vertical.out &&
           of.horizontal.in == of.horizontal.out && of.vertical.padding == 0 &&
           of.horizontal.padding == 0;
  }
};

/// Base of ConvTranspose1d and ConvTranspose2d.
template <int Axes, int Filters, auto Kernel, class... Options>
struct any_conv_transpose {
  using options = layers<Options...>;
  static constexpr auto takes =
      kinds_of_convolution_option | option_kinds(option_kind::output_padding);
  static constexpr bool has_bias = !(std::is_same_v<Options, NoBias> || ...);

  template <class Builder>
  static constexpr void describe(Builder& b) {
    window const w = convolution_window<Axes, Kernel, Options...>();
    convolution_options const c = convolution_options_of<Axes, Options...>();
    if (!needs_convolvable<Axes>(b, w, c.groups, Filters) ||
        !b.needs_not_negative(sample_shape(c.output_padding[0], c.output_padding[1])))
      return;
    for (int i = 0; i < 2; ++i)
      if (int const more = c.output_padding[i]; more >= w.stride[i] && more >= w.dilation[i])
        return b.report(wrong::output_padding_must_be_below_the_stride, sample_shape(w.stride[i]),
                        sample_shape(more));
    handle const x = b.current();
    // The convolution whose transpose this is: its filters are the channels here.
    convolution_attributes const of{
        transposed_axis_of(extent_of(x.form, 0), w, 0, c.output_padding[0]),
        transposed_axis_of(extent_of(x.form, 1), w, 1, c.output_padding[1]), Filters,
        x.form.columns(), c.groups};
    sample_shape const form = image_form<Axes>(of.vertical.in, of.horizontal.in, Filters);
    if (!b.needs_positive(form)) return;
    convolve(b, weight_form<Axes>(of), of.inner(), of.taps() * of.filters, Filters, has_bias,
             initial_of<Options...>(b.scope().initial),
             [&](operand weight) { return b.transposed_convolution(x, weight, form, of); });
  }
};

}  // namespace detail

/// An option: channels and filters are divided into this number of groups, and a filter reads the
/// channels of its group; 1 without it. With as many groups as channels the layer is depthwise.
template <int Number>
struct Groups {
  static constexpr auto option = detail::option_kind::groups;
  static constexpr void join(detail::convolution_options& c) { c.groups = Number; }
};
/// An option of transposed convolutions: rows and columns that the result has more, at its end; 0
/// without it. Images of several sizes have convolutions of one size, and this chooses among them.
template <int Down, int Across = Down>
struct OutputPadding {
  static constexpr auto option = detail::option_kind::output_padding;
  static constexpr void join(detail::convolution_options& c) {
    c.output_padding[0] = Down, c.output_padding[1] = Across;
  }
};

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
/// errors:  layer_needs_an_image_of_three_extents, window_is_larger_than_its_padded_input,
///          groups_do_not_divide_the_channels, size_must_be_positive, size_must_not_be_negative
/// cost:    forward 2 kh kw C / groups Filters FLOPs per pixel of the result; backward twice that
template <int Filters, detail::window_extents auto Kernel, class... Options>
struct Conv2d : detail::any_conv<2, Filters, Kernel, Options...> {};

/// The same along the positions of a sequence; of an option with two numbers it reads the first.
///
/// shape: (T, C) -> (T', Filters); w[k, C / groups, Filters], in files [Filters, C / groups, k]
template <int Filters, int Kernel, class... Options>
struct Conv1d : detail::any_conv<1, Filters, Kernel, Options...> {};

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
struct ConvTranspose2d : detail::any_conv_transpose<2, Filters, Kernel, Options...> {};

/// The same along the positions of a sequence.
///
/// shape: (T, C) -> (T', Filters)
template <int Filters, int Kernel, class... Options>
struct ConvTranspose1d : detail::any_conv_transpose<1, Filters, Kernel, Options...> {};

}  // namespace pp
