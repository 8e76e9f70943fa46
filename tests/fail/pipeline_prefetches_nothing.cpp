// error: wrong::pipeline_prefetches_nothing, .*NoPrefetching
// SPDX-License-Identifier: BSL-1.0
//
// A second mini-batch takes memory: programs that want it say so.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Prefetching>;
#else
using Trainer = Pipeline<Net, PortableHost>;
#endif

double first(Trainer& trainer, Trainer::batch const& batch) {
  trainer.prefetch(batch);
  return trainer.step(prefetched).loss;
}
