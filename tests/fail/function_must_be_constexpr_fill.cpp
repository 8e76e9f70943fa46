// error: wrong::function_must_be_constexpr, .*Order.*Function<.*fill>
// SPDX-License-Identifier: BSL-1.0
//
// The compiler makes the schedule.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT
#endif

struct Order : OneFOneB {
  template <class Problem, class Table>
  static PIPE_TEST_CONSTANT void fill(Problem const& problem, Table& table) {
    OneFOneB::fill(problem, table);
  }
};
using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, Order>;
#include "program.hpp"
