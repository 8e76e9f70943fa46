// SPDX-License-Identifier: BSL-1.0
//
// User-defined layers. Their functions are compiled for this instruction set where the compiler can
// inline them.

/// The layer of group G, and parts of the arguments of its functions.
template <class P, int G>
struct custom_layer {
  using k = group_rows<P, G>;
  using T = typename k::T;
  using V = typename k::V;
  using layer = detail::leaf_at<k::g.leaf, typename P::leaves>;
  static constexpr sample_shape form = k::g.attributes.custom().form;

  /// Sets the parameters and buffers, which are the operands of the group from `First` on.
  template <int First, class Arguments>
  [[gnu::always_inline]] static void set_parameters(Arguments& with, arguments<T> const& a) {
    for (int i = 0; i < layer::parameters; ++i)
      with.parameter[i] = a.template values<V>(k::g.in[First + i]);
    for (int i = 0; i < layer::buffers; ++i)
      with.buffer[i] = a.at(k::g.in[First + layer::parameters + i]);
  }
  /// Limits a function to the samples of this part, if the layer's samples are independent. Returns
  /// whether there are any.
  template <class Arguments>
  [[gnu::always_inline]] static bool take_part(Arguments& with, arguments<T> const& a) {
    if constexpr (layer::samples_are_independent) {
      part_range const own = own_part(P::samples, 1, a.part, a.parts);
      extent const in = own.begin * form.elements(),
                   out = own.begin * layer::kernels::result(form).elements();
      with.samples = int(own.size());
      with.x += in;
      if (with.saved != nullptr) with.saved += own.begin * layer::saved_per_sample(form);
      if constexpr (requires { with.dx; })
        with.dy += out, with.dx += in;
      else
        with.y += out;
      return own.size() > 0;
    }
    (void)with, (void)a;
    return true;
  }
};

/// y = f(x), by the layer's own function.
///
/// shape: x (B, in), parameters, buffers -> y (B, out), saved (B, saved_per_sample) if the layer
///        saves any
/// work:  parts own samples if the layer's samples are independent; otherwise one part
template <>
struct kernel_of<op_kind::custom> : custom_sample_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using of = custom_layer<P, G>;
    constexpr detail::group g = of::k::g;
    using V = typename of::V;
    custom::forward<V> with{P::samples,
                            of::form,
                            a.template values<V>(g.in[0]),
                            {},
                            a.template values<V>(g.out[0]),
                            a.template maybe_values<V>(g.out[1])};
    of::template set_parameters<1>(with, a);
    if (of::take_part(with, a)) of::layer::kernels::forward(with);
  }
};

/// dx from dy and the operands and saved values of the forward function.
///
/// shape: dy (B, out), x (B, in), saved, parameters, buffers -> dx (B, in), overwritten
/// work:  parts own samples if the layer's samples are independent; otherwise one part
template <>
struct kernel_of<op_kind::custom_input_gradient> : custom_sample_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using of = custom_layer<P, G>;
    constexpr detail::group g = of::k::g;
    using V = typename of::V;
    custom::input_gradient<V> with{P::samples,
                                   of::form,
                                   a.template values<V>(g.in[0]),
                                   a.template values<V>(g.in[1]),
                                   a.template maybe_values<V>(g.in[2]),
                                   {},
                                   a.template values<V>(g.out[0])};
    of::template set_parameters<3>(with, a);
    if (of::take_part(with, a)) of::layer::kernels::input_gradient(with);
  }
};

/// Gradients of the parameters: the layer's function adds the gradient of a micro-batch.
///
/// shape: dy (B, out), x (B, in), saved, parameters, buffers -> one gradient per trained parameter
/// law:   gradients are cleared before the first micro-batch, since the function only adds
/// work:  one part, so that sums have one order
template <>
struct kernel_of<op_kind::custom_weight_gradient> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using of = custom_layer<P, G>;
    using T = typename of::T;
    constexpr detail::group g = of::k::g;
    using V = typename of::V;
    custom::weight_gradient<V> with{P::samples,
                                    of::form,
                                    a.template values<V>(g.in[0]),
                                    a.template values<V>(g.in[1]),
                                    a.template maybe_values<V>(g.in[2]),
                                    {},
                                    {},
                                    {}};
    of::template set_parameters<3>(with, a);
    for (int i = 0; i < of::layer::parameters; ++i) {
      with.gradient[i] = a.maybe(g.out[i]);
      if (with.gradient[i] != nullptr && !a.accumulate)
        std::memset(with.gradient[i], 0, sizeof(T) * std::size_t(of::layer::elements(i, of::form)));
    }
    of::layer::kernels::weight_gradient(with);
  }
};

/// Sums of a layer's buffers: the layer's function adds the sum of a micro-batch.
///
/// shape: x (valid samples, in), saved, parameters, buffers -> one sum for each buffer that is
///        written
/// law:   samples that only fill up the last micro-batch are not counted; sums are cleared before
///        the first micro-batch
template <>
struct kernel_of<op_kind::custom_statistics> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using of = custom_layer<P, G>;
    using T = typename of::T;
    constexpr detail::group g = of::k::g;
    using V = typename of::V;
    custom::statistics<V> with{a.valid_samples < P::samples ? a.valid_samples : P::samples,
                               of::form,
                               a.template values<V>(g.in[0]),
                               a.template maybe_values<V>(g.in[1]),
                               {},
                               {},
                               {}};
    of::template set_parameters<2>(with, a);
    for (int i = 0; i < of::layer::buffers; ++i) {
      with.sum[i] = a.maybe(g.out[i]);
      if (with.sum[i] != nullptr && !a.accumulate)
        std::memset(with.sum[i], 0,
                    sizeof(T) * std::size_t(of::layer::buffer_elements(i, of::form)));
    }
    of::layer::kernels::statistics(with);
  }
};
