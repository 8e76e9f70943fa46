// error: wrong::Layer<2, .*wrong::tied_name_must_belong_to_exactly_one_layer_before\b.*Tied<.*Called<'b', 'l', 'o', 'c', 'k'>.*Expected<1>.*Found<0>
// SPDX-License-Identifier: BSL-1.0
//
// A layer that is there, by its name.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Named<"block", Linear<4>>, Tied<"block">, Linear<2>, MSE> {
};
#else
struct Net : Model<Input<3>, Linear<4>, Named<"black", Linear<4>>, Tied<"block">, Linear<2>, MSE> {
};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
