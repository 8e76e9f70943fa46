// error: wrong::Layer<1, .*wrong::formula_needs_forward_and_derivative\b.*Map<Square<false> ?>.*Missing<.*derivative>
// SPDX-License-Identifier: BSL-1.0
//
// A formula of a user's own says its slope, too.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool HasDerivative>
struct Square {
  PIPE_HD static PIPE_INLINE float forward(float x) { return x * x; }
  PIPE_HD static PIPE_INLINE float derivative(float x)
    requires HasDerivative
  {
    return 2 * x;
  }
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Map<Square<true>>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Map<Square<false>>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
