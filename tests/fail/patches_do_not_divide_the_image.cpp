// error: wrong::Layer<0, .*wrong::patches_do_not_divide_the_image\b.*PatchEmbedding<8, 4>.*Expected<4, 4>.*Found<12, 10, 3>
// SPDX-License-Identifier: BSL-1.0
//
// An image is cut into whole patches.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<12, 8, 3>, PatchEmbedding<8, 4>, MeanPool, Linear<11>, CrossEntropy> {};
#else
struct Net : Model<Input<12, 10, 3>, PatchEmbedding<8, 4>, MeanPool, Linear<11>, CrossEntropy> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
