// error: wrong::function_must_be_constexpr, .*Order.*Function<.*refuses>
// SPDX-License-Identifier: BSL-1.0
//
// The compiler asks the schedule whether there is one for these numbers.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT
#endif

struct Order : OneFOneB {
  static PIPE_TEST_CONSTANT char const* refuses(int, int) { return nullptr; }
};
using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, Order>;
#include "program.hpp"
