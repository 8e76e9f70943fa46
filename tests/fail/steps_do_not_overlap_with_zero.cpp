// error: wrong::steps_do_not_overlap_with, .*Steady.*ZeRO<2>
// SPDX-License-Identifier: BSL-1.0
//
// Tcp that divide gradients or parameters end a step before the next one.
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, MicroBatches<4>, Stages<2>, OneFOneB, Tcp, ZeRO<2>>;
#else
using Trainer =
    Pipeline<Net, PortableHost, MicroBatches<4>, Stages<2>, Steady<OneFOneB>, Tcp, ZeRO<2>>;
#endif

#include "program.hpp"
