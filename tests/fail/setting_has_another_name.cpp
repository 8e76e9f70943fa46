// error: has no non-static data member named 'learning_rte'|field designator 'learning_rte' does not refer to any
// error(nvcc): has no field "learning_rte"
// SPDX-License-Identifier: BSL-1.0
//
// A wrong name of a setting, where the type of the settings is written.
#include <pipe/pipe.hpp>

#include <vector>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost>;

#ifdef PIPE_EXPECT_OK
void train() { Trainer trainer(Trainer::settings{.optimizer = {.learning_rate = 0.1}}); }
#else
void train() { Trainer trainer(Trainer::settings{.learning_rte = 0.1}); }
#endif
