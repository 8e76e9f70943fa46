// error: wrong::ranks_of_a_device_share_its_memory, .*Cuda.*Messages
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// The ranks of a GPU are streams: a transport that copies between ranks has no place there.
#include <pipe/pipe.hpp>

#include "../transport/messages.hpp"

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, Cuda, InProcess>;
#else
using Trainer = Pipeline<Net, AdamW, Cuda, Messages>;
#endif

#include "program.hpp"
