// error: wrong::steps_do_not_overlap_with, .*Steady<.*StageReplicas<1, 2>.*Tcp
// SPDX-License-Identifier: BSL-1.0
//
// The ranks of a stage add to its gradient in the order of one step.
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Stages<2>, MicroBatches<4>, Steady<>, Tcp>;
#else
using Trainer = Pipeline<Net, PortableHost, StageReplicas<1, 2>, MicroBatches<4>, Steady<>, Tcp>;
#endif

#include "program.hpp"
