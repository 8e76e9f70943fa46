// error: wrong::model_must_be_complete_before_it_is_trained, .*Net
// SPDX-License-Identifier: BSL-1.0
//
// A model that is declared has no layers yet.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net;
#endif

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
