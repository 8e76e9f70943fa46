// error: wrong::Layer<2, .*wrong::loss_takes_logits_but_gets_probabilities\b.*CrossEntropy
// SPDX-License-Identifier: BSL-1.0
//
// CrossEntropy has a softmax of its own, also where a Flatten stands between.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2, 3>, Linear<4>, Softmax, Linear<4>, Flatten, CrossEntropy> {};
#else
struct Net : Model<Input<2, 3>, Linear<4>, Softmax, Flatten, CrossEntropy> {};
#endif
