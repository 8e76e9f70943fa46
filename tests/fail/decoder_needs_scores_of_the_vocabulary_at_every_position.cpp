// error: wrong::decoder_needs_scores_of_the_vocabulary_at_every_position, .*Net.*Expected<3, 7>.*Found<3, 5>
// SPDX-License-Identifier: BSL-1.0
//
// A decoder reads what was drawn from its own scores.
#include <pipe/infer/generate.hpp>
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<7, 3>, Embedding<4>, Linear<7>, CrossEntropy> {};
#else
struct Net : Model<Tokens<7, 3>, Embedding<4>, Linear<5>, CrossEntropy> {};
#endif
using Trainer = Pipeline<Net, PortableHost>;

std::vector<int> go_on(Trainer& trainer, std::vector<int> const& prompt) {
  decoder read(trainer);
  read.read(prompt);
  return generate(trainer, prompt, {.tokens = 5, .sampling = {.temperature = 0}});
}
