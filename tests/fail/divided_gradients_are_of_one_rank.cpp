// error: wrong::divided_gradients_are_of_one_rank, .*ZeRO<2>.*StageReplicas<2, 1>
// SPDX-License-Identifier: BSL-1.0
//
// The ranks of a stage add to its gradient in turn, and each has all of it.
#include <pipe/pipe.hpp>
#include <pipe/tcp.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, StageReplicas<2, 1>, MicroBatches<1>, ZeRO<1>, Tcp>;
#else
using Trainer = Pipeline<Net, PortableHost, StageReplicas<2, 1>, MicroBatches<1>, ZeRO<2>, Tcp>;
#endif

#include "program.hpp"
