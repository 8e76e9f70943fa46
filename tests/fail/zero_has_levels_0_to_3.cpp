// error: wrong::zero_has_levels_0_to_3, .*ZeRO<4>
// SPDX-License-Identifier: BSL-1.0
//
// ZeRO divides state, gradients and parameters.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, ZeRO<3>, AdamW>;
#else
using Trainer = Pipeline<Net, PortableHost, ZeRO<4>, AdamW>;
#endif

#include "program.hpp"
