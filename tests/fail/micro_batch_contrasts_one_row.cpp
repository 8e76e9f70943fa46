// error: wrong::micro_batch_contrasts_one_row, .*Net.*MicroBatchSize<1>
// SPDX-License-Identifier: BSL-1.0
//
// A row alone has no other rows to be told from.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<8>, InfoNCE<1, 10>> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, MicroBatchSize<2>, PortableHost>;
#else
using Trainer = Pipeline<Net, MicroBatchSize<1>, PortableHost>;
#endif

#include "program.hpp"
