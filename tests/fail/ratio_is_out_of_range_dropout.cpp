// error: wrong::Layer<1, .*wrong::ratio_is_out_of_range\b.*Dropout<10, 10>.*Found<10, 10>
// SPDX-License-Identifier: BSL-1.0
//
// What drops everything keeps nothing to scale up.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Dropout<1, 10>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<4>, Dropout<10, 10>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
