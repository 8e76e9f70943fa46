// error: wrong::Layer<1, .*wrong::item_is_not_a_layer\b.*Doubled
// SPDX-License-Identifier: BSL-1.0
//
// A layer has a static describe(builder).
#include <pipe/pipe.hpp>

using namespace pp;

/// A user's own formula, once with and once without what makes it a layer.
template <bool IsLayer>
struct Doubled {};
template <>
struct Doubled<true> : Activation<Doubled<true>> {
  static constexpr bool derivative_reads_output = true;
  template <class T>
  PIPE_HD static T forward(T x) {
    return x + x;
  }
  template <class T>
  PIPE_HD static T derivative(T) {
    return T(2);
  }
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Doubled<true>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Doubled<false>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
