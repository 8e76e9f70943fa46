// error: wrong::Layer<0, .*wrong::padding_index_is_outside_of_the_vocabulary\b.*EmbeddingBag.*Expected<9>.*Found<9>
// SPDX-License-Identifier: BSL-1.0
//
// An id that no sample can have.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<9, 4>, EmbeddingBag<3, PaddingIndex<8>>, Linear<2>, MSE> {};
#else
struct Net : Model<Tokens<9, 4>, EmbeddingBag<3, PaddingIndex<9>>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
