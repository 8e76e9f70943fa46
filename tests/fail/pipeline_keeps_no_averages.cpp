// error: wrong::pipeline_keeps_no_averages, .*NoAveraging
// SPDX-License-Identifier: BSL-1.0
//
// Averages take memory: who wants them says so.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Averaging<99, 100>>;
#else
using Trainer = Pipeline<Net, PortableHost>;
#endif

double first(Trainer& trainer) {
  trainer.swap_averages();
  return trainer.averaged()[0].values[0];
}
