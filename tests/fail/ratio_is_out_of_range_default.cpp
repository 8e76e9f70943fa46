// error: wrong::Layer<1, .*wrong::ratio_is_out_of_range\b.*Dropout<2(, 1)?>.*Found<2, 1>
// SPDX-License-Identifier: BSL-1.0
//
// Without a denominator it is 1.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Dropout<0>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Dropout<2>, Linear<2>, MSE> {};
#endif
