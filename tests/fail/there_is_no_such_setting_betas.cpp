// error: wrong::there_is_no_such_setting, .*Pipeline<Net.*Called<'b', 'e', 't', 'a', 's'>.*UseInstead<.*optimizer_and_in_it_beta1_and_beta2>
// SPDX-License-Identifier: BSL-1.0
//
// A setting whose value elsewhere is a list.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost, AdamW>;

#ifdef PIPE_EXPECT_OK
void train() { Trainer trainer({.optimizer = {.beta1 = 0.9, .beta2 = 0.99}}); }
#else
void train() { Trainer trainer({.betas = {0.9, 0.99}}); }
#endif
