// error: wrong::Layer<2, .*wrong::value_is_popped_but_never_stashed\b.*FurtherLoss<.*Called<'b', 'o', 'd', 'y'>
// SPDX-License-Identifier: BSL-1.0
//
// A further loss of a value that no layer before has.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<4>, Linear<6>, Stash<"body">, Linear<2>,
                   Losses<MSE, FurtherLoss<"kind", "body", Linear<3>, CrossEntropy>>> {};
#else
struct Net : Model<Input<4>, Linear<6>, Linear<2>,
                   Losses<MSE, FurtherLoss<"kind", "body", Linear<3>, CrossEntropy>>> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
