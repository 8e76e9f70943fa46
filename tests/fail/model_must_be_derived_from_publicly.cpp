// error: wrong::model_must_be_derived_from_publicly, .*Net
// SPDX-License-Identifier: BSL-1.0
//
// What a class is derived from is private, unless it says otherwise.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
class Net : public Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#else
class Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
