// error: wrong::custom_layer_has_no_functions_for_cuda, .*Twice
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// A layer of one's own has functions for the host alone.
#include <pipe/pipe.hpp>

using namespace pp;

struct Twice {
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const& c) {
    for (long i = 0; i < c.samples * c.in.elements(); ++i) c.y[i] = 2 * c.x[i];
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& c) {
    for (long i = 0; i < c.samples * c.in.elements(); ++i) c.dx[i] = 2 * c.dy[i];
  }
#ifdef PIPE_EXPECT_OK
  template <class T>
  static void forward(custom::forward<T> const& c, cudaStream_t on) {
    cudaMemcpyAsync(c.y, c.x, sizeof(T) * std::size_t(c.samples * c.in.elements()),
                    cudaMemcpyDeviceToDevice, on);
  }
  template <class T>
  static void input_gradient(custom::input_gradient<T> const& c, cudaStream_t on) {
    cudaMemcpyAsync(c.dx, c.dy, sizeof(T) * std::size_t(c.samples * c.in.elements()),
                    cudaMemcpyDeviceToDevice, on);
  }
#endif
};

struct Net : Model<Input<3>, Linear<4>, Custom<Twice>, Linear<2>, MSE> {};

using Trainer = Pipeline<Net, AdamW, Cuda>;

#include "program.hpp"
