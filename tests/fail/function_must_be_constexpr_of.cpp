// error: wrong::function_must_be_constexpr, .*Init<.*Small.*>.*Function<.*of>
// SPDX-License-Identifier: BSL-1.0
//
// The compiler asks a recipe how parameters begin.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT
#endif

struct Small {
  static PIPE_TEST_CONSTANT detail::initializer of(int, int) {
    return {distribution::normal, 0.01f};
  }
};
struct Net : Model<Input<3>, Linear<4, Init<Small>>, Linear<2>, MSE> {};

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
