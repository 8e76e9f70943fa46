// error: wrong::decoder_needs_token_ids_as_the_only_input, .*Net
// SPDX-License-Identifier: BSL-1.0
//
// What a decoder reads is one text.
#include <pipe/infer/generate.hpp>
#include <pipe/pipe.hpp>

using namespace pp;

#ifdef PIPE_EXPECT_OK
struct Net : Model<Tokens<7, 3>, Embedding<4>, Linear<7>, CrossEntropy> {};
#else
struct Net : Model<Tokens<7, 3>, Embedding<4>, Stash<"a">, Named<"second", Tokens<7, 3>>,
                   Embedding<4>, Pop<"a">, Linear<7>, CrossEntropy> {};
#endif
using Trainer = Pipeline<Net, PortableHost>;

std::vector<int> go_on(Trainer& trainer, std::vector<int> const& prompt) {
  decoder read(trainer);
  read.read(prompt);
  return generate(trainer, prompt, {.tokens = 5, .sampling = {.temperature = 0}});
}
