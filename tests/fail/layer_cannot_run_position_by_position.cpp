// error: wrong::Layer<1, .*wrong::layer_cannot_run_position_by_position\b.*Attention<2, .*NotCausal
// SPDX-License-Identifier: BSL-1.0
//
// A position must not depend on later ones.
#include <pipe/infer/generate.hpp>
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<7, 3>, Embedding<4>, Attention<2>, Linear<7>, CrossEntropy> {};
#else
struct Net : Model<Tokens<7, 3>, Embedding<4>, Attention<2, NotCausal>, Linear<7>, CrossEntropy> {};
#endif
using Trainer = Pipeline<Net, PortableHost>;

std::vector<int> go_on(Trainer& trainer, std::vector<int> const& prompt) {
  decoder read(trainer);
  read.read(prompt);
  return generate(trainer, prompt, {.tokens = 5, .sampling = {.temperature = 0}});
}
