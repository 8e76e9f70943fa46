// error: wrong::Layer<1, .*wrong::ratio_is_out_of_range\b.*LabelSmoothing<3, 2>.*Found<3, 2>
// SPDX-License-Identifier: BSL-1.0
//
// No more than all of the target can be spread over the classes.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, With<CrossEntropy, ZLoss<0, 1>, LabelSmoothing<1, 2>>> {};
#else
struct Net : Model<Input<3>, Linear<4>, With<CrossEntropy, ZLoss<0, 1>, LabelSmoothing<3, 2>>> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
