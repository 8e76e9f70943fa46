// SPDX-License-Identifier: BSL-1.0
//
// The same GPT with the kernels of this machine's instruction set.
#include "golden/gpt.hpp"

TEST_CASE("a GPT learns as in PyTorch with vector kernels", "[golden]") {
  golden::record const theirs("gpt", "gpt");
  using trainer = golden::GptTrainer<pp::Host>;
  golden::check_gradients_of<trainer>(theirs);
  golden::check_course(golden::train<trainer>(theirs), theirs);
}
