// error: wrong::optimizer_is_incomplete, .*Descent<false>.*Missing<.*name>
// SPDX-License-Identifier: BSL-1.0
//
// An optimizer says everything that its concept asks for.
#include <pipe/pipe.hpp>

using namespace pp;

struct called {
  static constexpr char const* name = "descent";
};
struct nameless {};

template <bool HasName>
struct Descent : std::conditional_t<HasName, called, nameless> {
  double learning_rate = 0.1, weight_decay = 0;
  static constexpr int states = 0;
  template <class T>
  struct coefficients {
    T rate, scale;
  };
  template <class T>
  coefficients<T> prepare(custom::update_context const& c) const {
    return {T(c.learning_rate), T(c.gradient_scale)};
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& c, T w, T g) {
    return w - c.rate * c.scale * g;
  }
};

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Descent<true>>;
#else
using Trainer = Pipeline<Net, PortableHost, Descent<false>>;
#endif

#include "program.hpp"
