// error: wrong::number_is_too_large, .*GradientAccumulation<1048576>.*AtMost<2147483647L?>
// SPDX-License-Identifier: BSL-1.0
//
// The samples of all accumulations are counted by an int.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatchSize<1024>, GradientAccumulation<1024>, PortableHost>;
#else
using Trainer = Pipeline<Net, MicroBatchSize<4096>, GradientAccumulation<1048576>, PortableHost>;
#endif

#include "program.hpp"
