// error: wrong::there_is_no_such_layer, .*CrossEntropyLoss.*UseInstead<.*CrossEntropy>
// SPDX-License-Identifier: BSL-1.0
//
// A loss under its name elsewhere.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, SiLU, Linear<2>, CrossEntropy> {};
#else
struct Net : Model<Input<3>, Linear<4>, SiLU, Linear<2>, CrossEntropyLoss> {};
#endif
