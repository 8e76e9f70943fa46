// error: wrong::Layer<1, .*wrong::name_is_given_twice\b.*Named<.*Called<'a'>
// SPDX-License-Identifier: BSL-1.0
//
// Both would have the same place in a weight file, where Frozen has none.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Named<"a", Linear<4>>, Frozen<Named<"b", Linear<2>>>, MSE> {};
#else
struct Net : Model<Input<3>, Named<"a", Linear<4>>, Frozen<Named<"a", Linear<2>>>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
