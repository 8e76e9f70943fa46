// error: wrong::Layer<2, .*wrong::popped_value_must_have_the_shape_of_the_current_one\b.*Pop<.*Called<'s', 'k', 'i', 'p'>.*Expected<5>.*Found<4>
// SPDX-License-Identifier: BSL-1.0
//
// Values that are added have one shape.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Stash<"skip">, Linear<4>, Pop<"skip">, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Stash<"skip">, Linear<5>, Pop<"skip">, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
