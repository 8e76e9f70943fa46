// SPDX-License-Identifier: BSL-1.0
//
// A small GPT learns as in PyTorch, on one stage and on three.
#include "golden/gpt.hpp"

using namespace pp;

TEST_CASE("a GPT learns as in PyTorch", "[golden]") {
  golden::record const theirs("gpt", "gpt");
  using one = golden::GptTrainer<PortableHost>;
  using three = golden::GptTrainer<PortableHost, Stages<3>>;
  golden::check_gradients_of<one>(theirs);
  golden::course const c = golden::train<one>(theirs), in_three = golden::train<three>(theirs);
  golden::check_course(c, theirs);
  CHECK(c.losses == in_three.losses);
  CHECK(c.norms == in_three.norms);
}
