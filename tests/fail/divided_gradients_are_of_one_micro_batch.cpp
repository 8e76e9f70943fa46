// error: wrong::divided_gradients_are_of_one_micro_batch, .*ZeRO<2>.*MicroBatches<1>
// SPDX-License-Identifier: BSL-1.0
//
// A gradient of which there are parts only is not accumulated; one of several micro-batches is.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, MicroBatches<2>, ZeRO<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, ZeRO<2>>;
#endif

double first(Trainer& trainer, Trainer::batch const& batch) {
  return trainer.accumulate(batch).loss;
}
