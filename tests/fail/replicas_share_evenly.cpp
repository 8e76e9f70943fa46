// error: wrong::replicas_share_evenly, .*GradientAccumulationBySpeed<8.*ZeRO<3>
// SPDX-License-Identifier: BSL-1.0
//
// Replicas that divide parameters bring them together in every run, so all make as many.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, GradientAccumulationBySpeed<8>, ZeRO<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, GradientAccumulationBySpeed<8>, ZeRO<3>>;
#endif

#include "program.hpp"
