// error: wrong::there_is_no_such_setting, .*Pipeline<Net.*Called<'l', 'r'>.*UseInstead<.*optimizer_and_in_it_learning_rate>
// SPDX-License-Identifier: BSL-1.0
//
// A setting under its name elsewhere.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
void train() { Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 0.1}}); }
#else
void train() { Trainer trainer({.seed = 1, .lr = 0.1}); }
#endif
