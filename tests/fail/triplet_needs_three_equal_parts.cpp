// error: wrong::Layer<1, .*wrong::triplet_needs_three_equal_parts\b.*TripletMarginLoss.*Found<8>
// SPDX-License-Identifier: BSL-1.0
//
// A row is an anchor, a positive and a negative.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<9>, TripletMarginLoss<>> {};
#else
struct Net : Model<Input<3>, Linear<8>, TripletMarginLoss<>> {};
#endif

using Trainer = Pipeline<Net, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
