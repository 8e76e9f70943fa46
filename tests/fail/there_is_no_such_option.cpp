// error: wrong::there_is_no_such_option, .*RMSprop.*UseInstead<.*Adam>
// SPDX-License-Identifier: BSL-1.0
//
// An optimizer that other libraries have.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, Adam, PortableHost>;
#else
using Trainer = Pipeline<Net, RMSprop, PortableHost>;
#endif

#include "program.hpp"
