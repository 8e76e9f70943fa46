// error: wrong::Layer<1, .*wrong::name_must_be_utf8\b.*Named<
// SPDX-License-Identifier: BSL-1.0
//
// A name in Latin-1 is none in UTF-8.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Named<"gr\xc3\xb6sse", Linear<2>>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Named<"gr\xf6sse", Linear<2>>, MSE> {};
#endif
