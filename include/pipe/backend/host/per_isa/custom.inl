// SPDX-License-Identifier: BSL-1.0
//
// User-defined layers. Their functions are compiled for this instruction set where the compiler can
// inline them.

/// y = f(x), by the layer's own function.
///
/// shape: x (B, in), parameters, buffers -> y (B, out), saved (B, saved_per_sample) if the layer
///        saves any
/// work:  one part, since the function is called for a whole micro-batch
template <>
struct kernel_of<op_kind::custom> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    custom::forward<T> with{P::samples,     g.attributes.custom().form, a.at(g.in[0]), {},
                            a.at(g.out[0]), a.maybe(g.out[1])};
    using layer = detail::leaf_at<g.leaf, typename P::leaves>;
    for (int i = 0; i < layer::parameters; ++i) with.parameter[i] = a.at(g.in[1 + i]);
    for (int i = 0; i < layer::buffers; ++i) with.buffer[i] = a.at(g.in[1 + layer::parameters + i]);
    layer::kernels::forward(with);
  }
};

/// dx from dy and the operands and saved values of the forward function.
///
/// shape: dy (B, out), x (B, in), saved, parameters, buffers -> dx (B, in), overwritten
template <>
struct kernel_of<op_kind::custom_input_gradient> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    custom::input_gradient<T> with{P::samples,    g.attributes.custom().form, a.at(g.in[0]),
                                   a.at(g.in[1]), a.maybe(g.in[2]),           {},
                                   a.at(g.out[0])};
    using layer = detail::leaf_at<g.leaf, typename P::leaves>;
    for (int i = 0; i < layer::parameters; ++i) with.parameter[i] = a.at(g.in[3 + i]);
    for (int i = 0; i < layer::buffers; ++i) with.buffer[i] = a.at(g.in[3 + layer::parameters + i]);
    layer::kernels::input_gradient(with);
  }
};

/// Gradients of the parameters: the layer's function adds the gradient of a micro-batch.
///
/// shape: dy (B, out), x (B, in), saved -> one gradient per trained parameter
/// law: gradients are cleared before the first micro-batch, since the function only adds
template <>
struct kernel_of<op_kind::custom_weight_gradient> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    using layer = detail::leaf_at<g.leaf, typename P::leaves>;
    custom::weight_gradient<T> with{P::samples,    g.attributes.custom().form, a.at(g.in[0]),
                                    a.at(g.in[1]), a.maybe(g.in[2]),           {}};
    for (int i = 0; i < layer::parameters; ++i) {
      with.gradient[i] = a.maybe(g.out[i]);
      if (with.gradient[i] != nullptr && !a.accumulate)
        std::memset(with.gradient[i], 0,
                    sizeof(T) * std::size_t(layer::elements(i, g.attributes.custom().form)));
    }
    layer::kernels::weight_gradient(with);
  }
};

/// Sums of a layer's buffers: the layer's function adds the sum of a micro-batch.
///
/// shape: x (valid samples, in), saved -> one sum for each buffer that is written
/// law:   samples that only fill up the last micro-batch are not counted; sums are cleared before
///        the first micro-batch
template <>
struct kernel_of<op_kind::custom_statistics> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr detail::group g = k::g;
    using layer = detail::leaf_at<g.leaf, typename P::leaves>;
    custom::statistics<T> with{a.valid_samples < P::samples ? a.valid_samples : P::samples,
                               g.attributes.custom().form,
                               a.at(g.in[0]),
                               a.maybe(g.in[1]),
                               {}};
    for (int i = 0; i < layer::buffers; ++i) {
      with.sum[i] = a.maybe(g.out[i]);
      if (with.sum[i] != nullptr && !a.accumulate)
        std::memset(with.sum[i], 0, sizeof(T) * std::size_t(layer::buffer_elements(i, with.in)));
    }
    layer::kernels::statistics(with);
  }
};
