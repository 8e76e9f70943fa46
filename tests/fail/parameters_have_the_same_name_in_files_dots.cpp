// error: wrong::Layer<1, .*wrong::parameters_have_the_same_name_in_files\b.*Linear<3.*Called<'a', '\.', 'b', '\.', 'w', 'e', 'i', 'g', 'h', 't'>
// SPDX-License-Identifier: BSL-1.0
//
// A dot in a name is the dot between names; names of different layers are the same only as a whole.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Named<"a.b", Linear<4>>, Named<"a", Seq<Named<"c", Linear<3>>, Tanh>>,
                   Named<"b", Linear<2>>, MSE> {};
#else
struct Net : Model<Input<3>, Named<"a.b", Linear<4>>, Named<"a", Seq<Named<"b", Linear<3>>, Tanh>>,
                   Named<"b", Linear<2>>, MSE> {};
#endif
