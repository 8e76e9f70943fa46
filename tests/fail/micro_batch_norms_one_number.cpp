// error: wrong::micro_batch_norms_one_number, .*Net.*MicroBatchSize<1>
// SPDX-License-Identifier: BSL-1.0
//
// A single number in each channel has no variance.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, BatchNorm, ReLU, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatchSize<2>, PortableHost>;
#else
using Trainer = Pipeline<Net, MicroBatchSize<1>, PortableHost>;
#endif

#include "program.hpp"
