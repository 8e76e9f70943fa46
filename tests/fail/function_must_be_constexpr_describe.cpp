// error: wrong::function_must_be_constexpr, .*Same.*Function<.*describe>
// SPDX-License-Identifier: BSL-1.0
//
// A layer describes itself while the model compiles.
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
#define PIPE_TEST_CONSTANT constexpr
#else
#define PIPE_TEST_CONSTANT
#endif

struct Same {
  template <class Builder>
  static PIPE_TEST_CONSTANT void describe(Builder& b) {
    b.set(b.current());
  }
};
struct Net : Model<Input<3>, Linear<4>, Residual<Same>, Linear<2>, MSE> {};

using Trainer = Pipeline<Net, PortableHost, AdamW>;
#include "program.hpp"
