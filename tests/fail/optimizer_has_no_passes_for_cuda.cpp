// error: wrong::optimizer_has_no_passes_for_cuda, .*Cuda.*Whole
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// An optimizer whose update computes on the host, and in no passes for a GPU.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

struct Whole {
  double learning_rate = 0.1, weight_decay = 0;
  static constexpr char const* name = "Whole";
  static constexpr bool takes(custom::tensor_kind) { return true; }
  static constexpr long state_elements(custom::tensor_shape const&) { return 0; }
  template <class Backend, class T>
  static constexpr long workspace_elements(custom::tensor_shape const&) {
    return 0;
  }
  template <class Kernels, class T>
  void update(Kernels, custom::update_context const&, custom::tensor_update<T> const&) const {}
};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, LAMB, Cuda>;
#else
using Trainer = Pipeline<Net, Whole, Cuda>;
#endif

#include "program.hpp"
