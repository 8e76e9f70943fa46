// error: wrong::model_has_too_many_layers, .*Repeat<1000000.*Expected<32767>
// SPDX-License-Identifier: BSL-1.0
//
// A number of copies that nobody means.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Repeat<100, Linear<3>>, MSE> {};
#else
struct Net : Model<Input<3>, Repeat<1000000, Linear<3>>, MSE> {};
#endif
