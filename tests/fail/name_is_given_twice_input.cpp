// error: wrong::Layer<1, .*wrong::name_is_given_twice\b.*Input<4>.*Called<'x'>
// SPDX-License-Identifier: BSL-1.0
//
// A batch could give the second input to nobody.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Named<"x", Input<3>>, Linear<4>, Stash<"left">, Named<"y", Input<4>>,
                   Pop<"left">, Linear<2>, MSE> {};
#else
struct Net : Model<Named<"x", Input<3>>, Linear<4>, Stash<"left">, Named<"x", Input<4>>,
                   Pop<"left">, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
