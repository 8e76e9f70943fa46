// error: wrong::divided_gradients_are_of_one_micro_batch<.*ZeRO<2>
// SPDX-License-Identifier: BSL-1.0
//
// Accumulated gradients are whole, too.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, ZeRO<1>>;
#else
using Trainer = Pipeline<Net, PortableHost, ZeRO<2>>;
#endif

double first(Trainer& trainer, Trainer::batch const& batch) {
  return trainer.accumulate(batch).loss;
}
