// error: wrong::value_must_be_constexpr, .*Order.*Value<.*splits_backward>
// SPDX-License-Identifier: BSL-1.0
//
// The compiler makes the schedule of its facts.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT inline
#endif

struct Order : OneFOneB {
  static PIPE_TEST_CONSTANT bool splits_backward = false;
};
using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, Order>;
#include "program.hpp"
