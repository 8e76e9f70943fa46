// error: wrong::divided_parameters_have_no_averages, .*ZeRO<3>.*Averaging
// SPDX-License-Identifier: BSL-1.0
//
// Averages are not divided.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, ZeRO<2>, Averaging<9, 10>>;
#else
using Trainer = Pipeline<Net, PortableHost, ZeRO<3>, Averaging<9, 10>>;
#endif

#include "program.hpp"
