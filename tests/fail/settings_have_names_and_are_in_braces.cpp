// error: wrong::settings_have_names_and_are_in_braces, .*Pipeline<Net
// SPDX-License-Identifier: BSL-1.0
//
// A number in place of the settings.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
void train() { Trainer trainer({.optimizer = {.learning_rate = 0.01}}); }
#else
void train() { Trainer trainer(0.01); }
#endif
