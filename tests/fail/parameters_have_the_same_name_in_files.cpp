// error: wrong::Layer<1, .*wrong::parameters_have_the_same_name_in_files\b.*Linear<2.*Called<'1', '\.', 'w', 'e', 'i', 'g', 'h', 't'>
// SPDX-License-Identifier: BSL-1.0
//
// A name that is the place of another layer.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Named<"0", Linear<4>>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Named<"1", Linear<4>>, Linear<2>, MSE> {};
#endif
