// error: wrong::Layer<2, .*wrong::loss_needs_value_and_slope\b.*Distance<false>.*Missing<.*slope>
// SPDX-License-Identifier: BSL-1.0
//
// A loss of a user's own says its slope, too.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool HasSlope>
struct Distance : ElementLoss<Distance<HasSlope>> {
  PIPE_HD static PIPE_INLINE float value(float x, float target) {
    return x < target ? target - x : x - target;
  }
  PIPE_HD static PIPE_INLINE float slope(float x, float target)
    requires HasSlope
  {
    return x < target ? -1.0f : 1.0f;
  }
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, Distance<true>> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2>, Distance<false>> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
