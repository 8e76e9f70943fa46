// error: wrong::no_parameters_to_train, .*Net
// SPDX-License-Identifier: BSL-1.0
//
// A step changes something. (A single stage without parameters is none the worse: the second of the twin's is.)
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Frozen<Linear<4>, Tanh>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Frozen<Linear<4>, Tanh, Linear<2>>, MSE> {};
#endif

using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<3>, Cut<1, 2>>;
#include "program.hpp"
