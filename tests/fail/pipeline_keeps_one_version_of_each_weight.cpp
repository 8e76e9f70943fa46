// error: wrong::pipeline_keeps_one_version_of_each_weight, .*Unending
// SPDX-License-Identifier: BSL-1.0
//
// A table with updates in it, and nothing about how its order goes on.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Tanh, Linear<4>, Linear<2>, MSE> {};

struct Unending : OneFOneB {
#ifndef PIPE_EXPECT_OK
  static constexpr bool updates = true;
#endif
};
using Trainer = Pipeline<Net, PortableHost, AdamW, Stages<4>, MicroBatches<4>, Unending>;

#include "program.hpp"
