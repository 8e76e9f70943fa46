// error: wrong::Layer<0, .*wrong::input_needs_one_to_four_extents\b.*Input<1, 2, 3, 4, 5>
// SPDX-License-Identifier: BSL-1.0
//
// A sample has at most four extents.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<1, 2, 3, 4>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<1, 2, 3, 4, 5>, Linear<4>, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
