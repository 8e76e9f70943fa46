// error: wrong::Layer<1, .*wrong::parameters_have_the_same_name_in_files\b.*Custom<Affine ?>.*Called<'1', '\.', 'f'>
// SPDX-License-Identifier: BSL-1.0
//
// Parameters of one layer have names of their own.
#include <pipe/pipe.hpp>

using namespace pp;

struct Affine {
#ifdef PIPE_EXPECT_OK
  static constexpr char const* names[] = {"f", "g"};
#else
  static constexpr char const* names[] = {"f", "f"};
#endif
  static constexpr int parameters = 2;
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

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
