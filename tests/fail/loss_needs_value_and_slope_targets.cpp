// error: wrong::Layer<1, .*wrong::loss_needs_value_and_slope\b.*Scaled<false>.*Missing<.*value>
// SPDX-License-Identifier: BSL-1.0
//
// A formula with a further target takes it.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool TakesIt>
struct Scaled : ElementLoss<Scaled<TakesIt>, Target<"scale">> {
  PIPE_HD static PIPE_INLINE float value(float x, float target, float scale)
    requires TakesIt
  {
    return (x - target) * scale;
  }
  PIPE_HD static PIPE_INLINE float value(float x, float target) { return x - target; }
  PIPE_HD static PIPE_INLINE float slope(float, float, float scale) { return scale; }
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Scaled<true>> {};
#else
struct Net : Model<Input<3>, Linear<4>, Scaled<false>> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
