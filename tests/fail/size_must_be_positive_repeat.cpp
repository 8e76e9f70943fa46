// error: wrong::Layer<1, .*wrong::size_must_be_positive\b.*Repeat<-1.*Found<-1>
// SPDX-License-Identifier: BSL-1.0
//
// So does a Repeat of fewer than one.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Repeat<1, Linear<2>>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Repeat<-1, Linear<2>>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
