// error: wrong::loss_is_missing_at_the_end_of_the_model, .*Losses<.*FurtherLoss<
// SPDX-License-Identifier: BSL-1.0
//
// A further loss ends in a loss.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, Linear<6>, Stash<"a">, Linear<2>,
                   Losses<MSE, FurtherLoss<"b", "a", Linear<3>, CrossEntropy>>> {};
#else
struct Net : Model<Input<4>, Linear<6>, Stash<"a">, Linear<2>,
                   Losses<MSE, FurtherLoss<"b", "a", Linear<3>, Linear<3>>>> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, PortableHost, AdamW>;
#include "program.hpp"
