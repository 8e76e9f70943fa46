// error: wrong::lengths_do_not_go_with, .*Lengths<8, 8>.*Steady
// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap copy mini-batches of samples of one length.
#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

struct Net : Model<Tokens<7, 8>, Embedding<4>, Linear<7>, CrossEntropy> {};

#ifdef PIPE_EXPECT_OK
using Trainer = Pipeline<Net, PortableHost, Lengths<>, OneFOneB, MicroBatches<2>, Stages<2>>;
#else
using Trainer = Pipeline<Net, PortableHost, Lengths<>, Steady<>, MicroBatches<2>, Stages<2>>;
#endif

#include "program.hpp"
