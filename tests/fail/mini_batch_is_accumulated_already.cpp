// error: wrong::mini_batch_is_accumulated_already, .*GradientAccumulation<2>
// SPDX-License-Identifier: BSL-1.0
//
// Accumulations are accumulated already.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost>;
#else
using Trainer = Pipeline<Net, PortableHost, GradientAccumulation<2>>;
#endif

double first(Trainer& trainer, Trainer::batch const& batch) {
  return trainer.accumulate(batch).loss;
}
