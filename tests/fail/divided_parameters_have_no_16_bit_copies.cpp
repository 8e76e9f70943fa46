// error: wrong::divided_parameters_have_no_16_bit_copies, .*ZeRO<3>.*BF16
// SPDX-License-Identifier: BSL-1.0
//
// Parameters that come together for a launch have no copies in 16 bits.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, ZeRO<2>, BF16>;
#else
using Trainer = Pipeline<Net, PortableHost, ZeRO<3>, BF16>;
#endif

#include "program.hpp"
