// error: wrong::function_must_be_constexpr, .*Descent.*Function<.*workspace_elements>
// SPDX-License-Identifier: BSL-1.0
//
// The compiler plans the memory of an optimizer.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT
#endif

struct Descent {
  double learning_rate = 0.1, weight_decay = 0;
  static constexpr char const* name = "descent";
  static constexpr bool takes(custom::tensor_kind) { return true; }
  static constexpr long state_elements(custom::tensor_shape const&) { return 0; }
  template <class Backend, class T>
  static PIPE_TEST_CONSTANT long workspace_elements(custom::tensor_shape const&) {
    return 0;
  }
  template <class Kernels, class T>
  void update(Kernels, custom::update_context const& c, custom::tensor_update<T> const& u) const {
    for (long i = 0; i < u.shape.elements(); ++i)
      u.values[i] -= T(c.learning_rate) * u.gradients[i];
  }
};
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

using Trainer = Pipeline<Net, PortableHost, Descent>;
#include "program.hpp"
