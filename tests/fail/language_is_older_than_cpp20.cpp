// error: (#error )?"?pipe needs C\+\+20: compile with -std=c\+\+20"?
// SPDX-License-Identifier: BSL-1.0
// errors: 2
// compilers: g++ clang++
// flags: -Wall
// refused: -std=c++17
//
// An older language is refused once, and nothing after that is compiled; PIPE_EXPECT_OK: the language of all tests.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
