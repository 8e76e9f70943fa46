// error: wrong::decoder_needs_scores_of_the_vocabulary_at_every_position, .*Expected<3, 7>.*Found<3, 5>
// compilers: nvcc
// SPDX-License-Identifier: BSL-1.0
//
// The token that is drawn is the next input.
#include <pipe/infer/generate_on_device.cuh>
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<7, 3>, Embedding<4>, Attention<2>, Linear<7>, CrossEntropy> {};
#else
struct Net : Model<Tokens<7, 3>, Embedding<4>, Attention<2>, Linear<5>, CrossEntropy> {};
#endif
using Trainer = Pipeline<Net, Cuda>;

int room(Trainer& trainer) { return device_generator(trainer).texts(); }
