// error: wrong::backend_has_no_such_precision, .*HostKernels<.*FP16
// SPDX-License-Identifier: BSL-1.0
//
// IEEE half precision, with a scaled loss, is for a GPU.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, AdamW, TF32>;
#else
using Trainer = Pipeline<Net, AdamW, FP16>;
#endif

#include "program.hpp"
