// error: wrong::Layer<0, .*wrong::layer_needs_a_sequence_of_two_extents\b.*Conv1d<.*Found<8, 8, 6>
// SPDX-License-Identifier: BSL-1.0
//
// An image where a sequence is needed.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<8, 6>, Conv1d<4, 3>, Flatten, Linear<2>, MSE> {};
#else
struct Net : Model<Input<8, 8, 6>, Conv1d<4, 3>, Flatten, Linear<2>, MSE> {};
#endif

using Trainer = Pipeline<Net, AdamW>;

#include "program.hpp"
