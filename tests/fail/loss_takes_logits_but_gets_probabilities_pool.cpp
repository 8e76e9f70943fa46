// error: wrong::Layer<4, .*wrong::loss_takes_logits_but_gets_probabilities\b.*CrossEntropy
// SPDX-License-Identifier: BSL-1.0
//
// A pool takes one position's probabilities, or their mean; a name and a list leave them as they are.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<5, 3>, Linear<4>, MeanPool, Linear<4>, CrossEntropy> {};
#else
struct Net : Model<Input<5, 3>, Linear<4>, Named<"scores", Seq<Softmax>>, Repeat<1, Dropout<1, 10>>,
                   MeanPool, CrossEntropy> {};
#endif
