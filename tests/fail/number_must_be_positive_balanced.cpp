// error: wrong::number_must_be_positive, .*StageReplicas<0>
// SPDX-License-Identifier: BSL-1.0
//
// Ranks are distributed over at least one stage.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, AdamW, BalancedReplicas<Net, 1, 2>>;
#else
using Trainer = Pipeline<Net, PortableHost, AdamW, BalancedReplicas<Net, 0, 2>>;
#endif

#include "program.hpp"
