// error: wrong::Layer<1, .*wrong::attention_needs_two_positions\b.*Attention<2.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// A position that sees only itself needs no attention.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<5, 3>, Linear<4>, Attention<2>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Attention<2>, Linear<2>, MSE> {};
#endif
