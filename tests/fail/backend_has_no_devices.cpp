// error: wrong::backend_has_no_devices, .*Devices<2>.*HostKernels<
// SPDX-License-Identifier: BSL-1.0
//
// The ranks of a host are threads.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, Stages<2>, AdamW, PortableHost>;
#else
using Trainer = Pipeline<Net, Stages<2>, AdamW, PortableHost, Devices<2>>;
#endif

#include "program.hpp"
