// error: wrong::first_argument_of_a_pipeline_must_be_a_model, .*Linear<4>
// SPDX-License-Identifier: BSL-1.0
//
// A layer is no model.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW>;
#else
using Trainer = Pipeline<Linear<4>, PortableHost, AdamW>;
#endif

#include "program.hpp"
