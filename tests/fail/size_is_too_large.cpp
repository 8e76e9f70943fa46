// error: wrong::Layer<1, .*wrong::size_is_too_large\b.*Linear<2000000000>.*Found<2000000000, 2000000000>
// SPDX-License-Identifier: BSL-1.0
//
// Nobody has memory for it, and its bytes are no number of 64 bits.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
#else
struct Net : Model<Input<3>, Linear<2000000000>, Linear<2000000000>, MSE> {};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, AdamW>;
#include "program.hpp"
