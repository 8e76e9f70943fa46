// error: wrong::number_must_be_a_power_of_two, .*GradientAccumulation<6>
// SPDX-License-Identifier: BSL-1.0
//
// A tree of accumulations is balanced.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, GradientAccumulation<8>>;
#else
using Trainer = Pipeline<Net, PortableHost, GradientAccumulation<6>>;
#endif

#include "program.hpp"
