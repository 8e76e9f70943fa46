// error: wrong::schedule_is_incomplete, .*Order.*Missing<.*refuses>
// SPDX-License-Identifier: BSL-1.0
//
// A schedule says in words why it refuses numbers, not in a bool.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};

#ifdef PIPE_EXPECT_OK
struct Order : OneFOneB {
  static constexpr char const* refuses(int, int) { return nullptr; }
};
#else
struct Order : OneFOneB {
  static constexpr bool refuses(int, int) { return false; }
};
#endif

using Trainer = Pipeline<Net, Stages<2>, MicroBatches<2>, PortableHost, Order>;
#include "program.hpp"
