// error: wrong::Layer<1, .*wrong::loss_is_missing_at_the_end_of_the_model\b.*Linear<2>
// SPDX-License-Identifier: BSL-1.0
//
// A model ends with what it is trained for.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2>> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
