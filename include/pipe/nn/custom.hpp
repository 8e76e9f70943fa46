// SPDX-License-Identifier: BSL-1.0
//
// A user-defined layer with its own kernels: it declares its shapes, parameters, saved values and
// costs, and has three functions. The compiler treats it like the library's layers: it is
// partitioned, scheduled, recomputed and planned like any other. docs/howto/own_layers.md shows how
// to write and check one.
#pragma once

#include <concepts>

#include <pipe/base/constant.hpp>
#include <pipe/base/custom.hpp>
#include <pipe/graph/builder.hpp>

namespace pp {

namespace custom {

/// One parameter of a Custom layer: a vector (one row), a matrix, or a tensor of up to four
/// extents.
struct parameter {
  int rows = 1, columns = 1;
  /// In weight files: not empty, UTF-8, unique among the parameters of a layer.
  char const* name = "weight";
  detail::initializer initial{distribution::constant, 0};
  bool decays = false;  ///< whether weight decay applies
  sample_shape form{};  ///< for a tensor of other than two extents, instead of rows x columns
  constexpr sample_shape extents() const {
    return form.rank > 0 ? form : sample_shape(rows, columns);
  }
};

/// One buffer of a Custom layer: numbers that forward and input_gradient read, and that the end of
/// each step writes by `commit`, from the sums of statistics().
struct buffer {
  sample_shape form{};                ///< 1 to 4 extents
  char const* name = "running_mean";  ///< in weight files, as for a parameter
  detail::initializer initial{distribution::constant, 0};
  detail::commit_rule commit{};
};

}  // namespace custom

namespace detail {

/// Whether L declares its number of parameters (says_buffers: of buffers) as a constant.
template <class L>
concept says_parameters = requires { typename constants<is_read(L::parameters)>; };
template <class L>
concept says_buffers = requires { typename constants<is_read(L::buffers)>; };
/// Whether L declares as a constant that its samples are independent, or that they are not.
template <class L>
concept says_independence = requires { typename constants<is_read(L::samples_are_independent)>; };

/// The first member that L lacks as a Custom layer with these numbers of parameters and buffers, or
/// `none`.
template <class L, int Parameters, int Buffers>
constexpr wrong::member missing_of_custom() {
  using enum wrong::member;
  using F = custom::forward<float> const&;
  using B = custom::input_gradient<float> const&;
  using W = custom::weight_gradient<float> const&;
  using S = custom::statistics<float> const&;
  if constexpr (!requires(sample_shape in) {
                  { L::result(in) } -> std::same_as<sample_shape>;
                })
    return result;
  else if constexpr (!requires(F f) { L::forward(f); })
    return forward;
  else if constexpr (!requires(B g) { L::input_gradient(g); })
    return input_gradient;
  else if constexpr (Parameters > 0 && !requires(sample_shape in) {
                       { L::parameter(0, in) } -> std::same_as<custom::parameter>;
                     })
    return parameter;
  else if constexpr (Parameters > 0 && !requires(W g) { L::weight_gradient(g); })
    return weight_gradient;
  else if constexpr (Buffers > 0 && !requires(sample_shape in) {
                       { L::buffer(0, in) } -> std::same_as<custom::buffer>;
                     })
    return buffer;
  else if constexpr (Buffers > 0 && !requires(S s) { L::statistics(s); })
    return statistics;
  else
    return none;
}

}  // namespace detail

/// A layer with user-defined functions. L must have
///
///     static constexpr shape result(shape in);                     // of one sample
///     template <class T> static void forward(custom::forward<T> const&);
///     template <class T> static void input_gradient(custom::input_gradient<T> const&);
///
/// and may have
///
///     static constexpr int parameters = 1;            // at most 3, with the buffers
///     static constexpr custom::parameter parameter(int i, shape in);
///     template <class T> static void weight_gradient(custom::weight_gradient<T> const&);
///     static constexpr long saved_per_sample(shape in);            // numbers
///     static constexpr long flops(shape in);  // of forward; backward counts twice as much
///     static constexpr int buffers = 1;
///     static constexpr custom::buffer buffer(int i, shape in);
///     template <class T> static void statistics(custom::statistics<T> const&);
///     static constexpr bool samples_are_independent = true;  // threads may divide the samples
///
/// To run on a GPU, L has the same functions with a stream, on which they launch kernels:
///
///     template <class T> static void forward(custom::forward<T> const&, cudaStream_t);
///
/// law: the functions depend on their arguments only; they run in any thread, one call at a time
///      per micro-batch or, of forward and input_gradient of independent samples, one call for the
///      samples of each thread; check_gradients<Custom<L>, Input<...>>() checks the gradients
template <class L>
struct Custom {
  using kernels = L;
  static constexpr int parameters = [] {
    if constexpr (detail::says_parameters<L>)
      return int(L::parameters);
    else
      return 0;
  }();

  static constexpr int buffers = [] {
    if constexpr (detail::says_buffers<L>)
      return int(L::buffers);
    else
      return 0;
  }();

  /// Whether the result and the saved numbers of a sample depend on no other sample of x, and its
  /// input gradient on no other sample of dy, x and saved.
  static constexpr bool samples_are_independent = [] {
    if constexpr (detail::says_independence<L>)
      return bool(L::samples_are_independent);
    else
      return false;
  }();

  static constexpr bool names_parameters = parameters + buffers > 1;

  /// The numbers of parameter i (buffer_elements: of buffer i) for inputs of shape `in`.
  static constexpr long elements(int i, sample_shape in) {
    return parameter(i, in).extents().elements();
  }
  static constexpr long buffer_elements(int i, sample_shape in) {
    return buffer(i, in).form.elements();
  }
  static constexpr long saved_per_sample(sample_shape in) {
    if constexpr (requires { L::saved_per_sample(in); }) return L::saved_per_sample(in);
    (void)in;
    return 0;
  }

  template <class Builder>
  static constexpr void describe(Builder& b) {
    constexpr wrong::member missing = detail::missing_of_custom<L, parameters, buffers>();
    if constexpr (requires { L::parameters; } && !detail::says_parameters<L>) {
      b.report_value(wrong::member::parameters);
    } else if constexpr (requires { L::buffers; } && !detail::says_buffers<L>) {
      b.report_value(wrong::member::buffers);
    } else if constexpr (requires { L::samples_are_independent; } &&
                         !detail::says_independence<L>) {
      b.report_value(wrong::member::samples_are_independent);
    } else if constexpr (missing != wrong::member::none) {
      b.report_missing(wrong::custom_layer_needs_its_shapes_and_its_functions, missing);
    } else if constexpr (parameters + buffers > detail::most_custom_parameters) {
      b.report(wrong::custom_layer_has_too_many_parameters,
               sample_shape(detail::most_custom_parameters), sample_shape(parameters + buffers));
    } else {
      if (!b.needs_numbers()) return;
      sample_shape const in = b.current().form, out = L::result(in);
      if (!b.needs_positive(int(out.elements()))) return;
      detail::custom_operands with;
      for (int i = 0; i < parameters; ++i) {
        custom::parameter const p = parameter(i, in);
        if (!b.needs_positive(p.extents())) return;
        if (!b.needs_name(p.name != nullptr ? p.name : "")) return;
        with.parameter[i] = b.parameter(p.extents(), p.initial, p.decays, {p.name});
      }
      for (int i = 0; i < buffers; ++i) {
        custom::buffer const p = buffer(i, in);
        if (!b.needs_positive(p.form.rank) || !b.needs_positive(p.form)) return;
        if (!b.needs_name(p.name != nullptr ? p.name : "")) return;
        if (!b.needs_rule(p.commit)) return;
        with.parameter[parameters + i] = b.buffer(p.form, p.initial, p.commit, {p.name});
      }
      with.saved_per_sample = saved_per_sample(in);
      with.samples_are_independent = samples_are_independent;
      if constexpr (requires { L::flops(in); }) with.flops = L::flops(in);
      b.set(b.custom(b.current(), out, with));
    }
  }

 private:
  static constexpr custom::parameter parameter(int i, sample_shape in) {
    if constexpr (parameters > 0) return L::parameter(i, in);
    (void)i, (void)in;
    return custom::parameter{};
  }
  static constexpr custom::buffer buffer(int i, sample_shape in) {
    if constexpr (buffers > 0) return L::buffer(i, in);
    (void)i, (void)in;
    return custom::buffer{};
  }
};

}  // namespace pp
