// error: wrong::there_is_no_such_setting, .*Adam.*Called<'b', 'e', 't', 'a', '_', '1'>.*UseInstead<.*beta1>
// SPDX-License-Identifier: BSL-1.0
//
// A setting of an optimizer under its name elsewhere.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost, Adam>;

#ifdef PIPE_EXPECT_OK
void train() { Trainer trainer({.optimizer = {.learning_rate = 0.1, .beta1 = 0.9}}); }
#else
void train() { Trainer trainer({.optimizer = {.learning_rate = 0.1, .beta_1 = 0.9}}); }
#endif
