// error: wrong::there_is_no_such_setting, .*Pipeline<Net.*Called<'d', 'e', 'v', 'i', 'c', 'e'>.*UseInstead<.*Host_or_Cuda_among_the_options>
// SPDX-License-Identifier: BSL-1.0
//
// Where a model runs is an option of the type.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost, AdamW>;

#ifdef PIPE_EXPECT_OK
void train() { Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 0.1}, .clip_norm = 1}); }
#else
void train() {
  Trainer trainer(
      {.seed = 1, .optimizer = {.learning_rate = 0.1}, .clip_norm = 1, .device = "cuda"});
}
#endif
