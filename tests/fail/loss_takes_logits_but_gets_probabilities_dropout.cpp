// error: wrong::Layer<3, .*wrong::loss_takes_logits_but_gets_probabilities\b.*CrossEntropy
// SPDX-License-Identifier: BSL-1.0
//
// Dropout only scales or zeroes probabilities. A Residual makes other numbers of them.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Residual<Softmax, Dropout<1, 10>>, CrossEntropy> {};
#else
struct Net : Model<Input<3>, Linear<4>, Softmax, Dropout<1, 10>, CrossEntropy> {};
#endif
