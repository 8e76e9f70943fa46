// error: wrong::Layer<1, .*wrong::name_must_not_be_empty\b.*Custom<Affine ?>
// SPDX-License-Identifier: BSL-1.0
//
// A parameter has a name.
#include <pipe/pipe.hpp>

using namespace pp;

struct Affine {
#ifdef PIPE_EXPECT_OK
  static constexpr char const* names[] = {"f"};
#else
  static constexpr char const* names[] = {nullptr};
#endif
  static constexpr int parameters = 1;
  static constexpr custom::parameter parameter(int i, sample_shape in) {
    return {1, in.columns(), names[i]};
  }
  static constexpr sample_shape result(sample_shape in) { return in; }
  template <class T>
  static void forward(custom::forward<T> const&) {}
  template <class T>
  static void input_gradient(custom::input_gradient<T> const&) {}
  template <class T>
  static void weight_gradient(custom::weight_gradient<T> const&) {}
};

struct Net : Model<Input<3>, Linear<4>, Custom<Affine>, Linear<2>, MSE> {};
