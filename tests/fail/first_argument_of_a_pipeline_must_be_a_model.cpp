// error: wrong::first_argument_of_a_pipeline_must_be_a_model, .*Plain>
// SPDX-License-Identifier: BSL-1.0
//
// A struct becomes a model by deriving from one.
#include <pipe/pipe.hpp>

using namespace pp;

struct Plain {};
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW>;
#else
using Trainer = Pipeline<Plain, PortableHost, AdamW>;
#endif

#include "program.hpp"
