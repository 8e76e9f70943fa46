// error: wrong::Layer<0, .*wrong::size_must_be_positive\b.*Embedding<-4>.*Found<-4>
// SPDX-License-Identifier: BSL-1.0
//
// Nor a negative one.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<11, 4>, Embedding<4>, Linear<11>, CrossEntropy> {};
#else
struct Net : Model<Tokens<11, 4>, Embedding<-4>, Linear<11>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
