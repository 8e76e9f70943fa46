// error: wrong::number_must_be_positive, .*GradientAccumulation<0>
// SPDX-License-Identifier: BSL-1.0
//
// A mini-batch has at least one accumulation.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, GradientAccumulation<1>>;
#else
using Trainer = Pipeline<Net, PortableHost, GradientAccumulation<0>>;
#endif

#include "program.hpp"
