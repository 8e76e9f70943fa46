// error: wrong::loss_is_missing_at_the_end_of_the_model, .*Losses<.*MSE, .*MSE
// SPDX-License-Identifier: BSL-1.0
//
// The second of several losses says by which labels and of which value it is.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net
    : Model<Input<4>, Linear<6>, Stash<"a">, Linear<2>, Losses<MSE, FurtherLoss<"b", "a", MSE>>> {};
#else
struct Net : Model<Input<4>, Linear<6>, Linear<2>, Losses<MSE, MSE>> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, PortableHost, AdamW>;
#include "program.hpp"
