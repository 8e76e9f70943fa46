// error: wrong::Layer<2, .*wrong::attention_needs_two_positions\b.*CrossAttention<2.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// Attention to a single position of another sequence chooses nothing.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<2, 3>, Linear<4>, Stash<"m">, Linear<4>, CrossAttention<2, "m">, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Stash<"m">, Linear<4>, CrossAttention<2, "m">, MSE> {};
#endif
