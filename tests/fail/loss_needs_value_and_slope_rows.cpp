// error: wrong::Layer<2, .*wrong::loss_needs_value_and_slope\b.*Off<false>.*Missing<.*slopes>
// SPDX-License-Identifier: BSL-1.0
//
// A loss by rows says all its slopes, too.
#include <pipe/pipe.hpp>

using namespace pp;

template <bool HasSlopes>
struct Off : RowLoss<Off<HasSlopes>> {
  using row = custom::row<float const>;
  PIPE_HD static PIPE_INLINE float value(row x, row label) { return (x[0] - label[0]) * x[1]; }
  PIPE_HD static PIPE_INLINE void slopes(row x, row label, custom::row<float> to)
    requires HasSlopes
  {
    to[0] = x[1];
    to[1] = x[0] - label[0];
  }
};

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, Off<true>> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2>, Off<false>> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
