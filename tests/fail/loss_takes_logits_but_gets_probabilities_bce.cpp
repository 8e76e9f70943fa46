// error: wrong::Layer<2, .*wrong::loss_takes_logits_but_gets_probabilities\b.*BCE
// SPDX-License-Identifier: BSL-1.0
//
// BCE has a sigmoid of its own; MSE may follow one.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Sigmoid, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Sigmoid, BCE> {};
#endif
