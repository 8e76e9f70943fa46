// error: wrong::Layer<0, .*wrong::first_item_of_a_model_must_be_its_input\b.*void
// SPDX-License-Identifier: BSL-1.0
//
// A list without items has no first one.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<2>, MSE> {};
#else
struct Net : Model<> {};
#endif

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
