// error: wrong::Layer<1, .*wrong::name_must_not_be_empty\b.*Named<
// SPDX-License-Identifier: BSL-1.0
//
// A name has letters.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Named<"a", Linear<2>>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Named<"", Linear<2>>, MSE> {};
#endif
