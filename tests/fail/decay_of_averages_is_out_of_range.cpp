// error: wrong::decay_of_averages_is_out_of_range, .*Averaging<3, 2>.*Found<3, 2>
// SPDX-License-Identifier: BSL-1.0
//
// An average forgets.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, Averaging<1, 2>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, Averaging<3, 2>>;
#endif

#include "program.hpp"
