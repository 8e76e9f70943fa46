// error: wrong::there_is_no_such_setting, .*Adam.*Called<'m', 'o', 'm', 'e', 'n', 't', 'u', 'm'>.*UseInstead<.*another_optimizer>
// SPDX-License-Identifier: BSL-1.0
//
// A setting of another optimizer.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, SGD>;
#else
using Trainer = Pipeline<Net, PortableHost, Adam>;
#endif

void train() {
  Trainer trainer({.optimizer = {.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0}});
}
