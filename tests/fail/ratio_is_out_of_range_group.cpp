// error: wrong::Layer<1, .*wrong::ratio_is_out_of_range\b.*LearningRate<-1, 2>.*Found<-1, 2>
// SPDX-License-Identifier: BSL-1.0
//
// Nobody learns backwards.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Group<LearningRate<1, 2>, Linear<2>>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Group<LearningRate<-1, 2>, Linear<2>>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
