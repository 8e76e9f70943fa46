// error: wrong::Layer<1, .*wrong::formula_needs_forward_and_derivative\b.*Cube<false>.*Missing<.*forward>
// SPDX-License-Identifier: BSL-1.0
//
// The same for a formula that is a layer by itself.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool HasForward>
struct Cube : Activation<Cube<HasForward>> {
  static constexpr bool derivative_reads_output = false;
  PIPE_HD static PIPE_INLINE float forward(float x)
    requires HasForward
  {
    return x * x * x;
  }
  PIPE_HD static PIPE_INLINE float derivative(float x) { return 3 * x * x; }
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Cube<true>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Cube<false>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
