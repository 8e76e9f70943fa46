// SPDX-License-Identifier: BSL-1.0
//
// A user-defined layer, all of it at once. Its functions are compiled for this instruction set
// where the compiler can inline them.

template <>
struct kernel_of<op_kind::custom> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr group g = k::g;
    custom_forward<T> with{P::samples,     g.attributes.custom().form, a.at(g.in[0]), {},
                           a.at(g.out[0]), k::maybe(a, g.out[1])};
    using layer = leaf_at<g.leaf, typename P::leaves>;
    for (int i = 0; i < layer::parameters; ++i) with.parameter[i] = a.at(g.in[1 + i]);
    for (int i = 0; i < layer::buffers; ++i) with.buffer[i] = a.at(g.in[1 + layer::parameters + i]);
    layer::kernels::forward(with);
  }
};

template <>
struct kernel_of<op_kind::custom_input_gradient> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr group g = k::g;
    custom_input_gradient<T> with{P::samples,    g.attributes.custom().form, a.at(g.in[0]),
                                  a.at(g.in[1]), k::maybe(a, g.in[2]),       {},
                                  a.at(g.out[0])};
    using layer = leaf_at<g.leaf, typename P::leaves>;
    for (int i = 0; i < layer::parameters; ++i) with.parameter[i] = a.at(g.in[3 + i]);
    for (int i = 0; i < layer::buffers; ++i) with.buffer[i] = a.at(g.in[3 + layer::parameters + i]);
    layer::kernels::input_gradient(with);
  }
};

/// The layer adds, so the first micro-batch must find zeros.
template <>
struct kernel_of<op_kind::custom_weight_gradient> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr group g = k::g;
    using layer = leaf_at<g.leaf, typename P::leaves>;
    custom_weight_gradient<T> with{P::samples,    g.attributes.custom().form, a.at(g.in[0]),
                                   a.at(g.in[1]), k::maybe(a, g.in[2]),       {}};
    for (int i = 0; i < layer::parameters; ++i) {
      with.gradient[i] = k::maybe(a, g.out[i]);
      if (with.gradient[i] != nullptr && !a.accumulate)
        std::memset(with.gradient[i], 0,
                    sizeof(T) * std::size_t(layer::elements(i, g.attributes.custom().form)));
    }
    layer::kernels::weight_gradient(with);
  }
};

/// As above. Samples that are filled up are not counted.
template <>
struct kernel_of<op_kind::custom_statistics> : custom_facts {
  template <class P, int G>
  [[gnu::flatten]] static void run(arguments<typename P::element> const& a) {
    using k = group_rows<P, G>;
    using T = typename k::T;
    constexpr group g = k::g;
    using layer = leaf_at<g.leaf, typename P::leaves>;
    custom_statistics<T> with{a.valid_samples < P::samples ? a.valid_samples : P::samples,
                              g.attributes.custom().form,
                              a.at(g.in[0]),
                              k::maybe(a, g.in[1]),
                              {}};
    for (int i = 0; i < layer::buffers; ++i) {
      with.sum[i] = k::maybe(a, g.out[i]);
      if (with.sum[i] != nullptr && !a.accumulate)
        std::memset(with.sum[i], 0, sizeof(T) * std::size_t(layer::buffer_elements(i, with.in)));
    }
    layer::kernels::statistics(with);
  }
};
