// error: (#error )?"?pipe needs exceptions: compile without -fno-exceptions"?
// SPDX-License-Identifier: BSL-1.0
// errors: 2
// compilers: g++ clang++
// flags: -fno-rtti
// refused: -fno-exceptions
//
// Exceptions are refused once if they are off, and nothing after that is compiled; PIPE_EXPECT_OK: without run-time types all compiles.
#include <pipe/pipe.hpp>

using namespace pp;

struct Net : Model<Input<3>, Linear<4>, Linear<2>, MSE> {};
using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
