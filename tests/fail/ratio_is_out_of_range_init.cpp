// error: wrong::Layer<1, .*wrong::ratio_is_out_of_range\b.*Init<.*Normal<-1, 10>.*Found<-1, 10>
// SPDX-License-Identifier: BSL-1.0
//
// No deviation is negative.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2, Init<Normal<1, 10>>>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Linear<2, Init<Normal<-1, 10>>>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
