// SPDX-License-Identifier: BSL-1.0
//
// Lengths of two inputs over processes, in steps that overlap: messages have rows of both, and the
// bits are those of padded samples in one process.
#include "mpi/alike.hpp"

#include <cstddef>
#include <vector>

#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

namespace {

constexpr int words = 17, context = 24, width = 8;

/// Between stages travel rows of the answer, and of the question.
struct Answer : Model<Tokens<words, context>, Embedding<width>, Positions,
                      Residual<LayerNorm, Attention<2, NotCausal>>, LayerNorm, Stash<"asked">,
                      Named<"answer", Tokens<13, 16>>, Embedding<width>, Positions,
                      Repeat<2, Residual<LayerNorm, Attention<2>>,
                             Residual<LayerNorm, CrossAttention<2, "asked">>>,
                      LayerNorm, Linear<13>, CrossEntropy> {};

template <class... More>
using Of = Pipeline<Answer, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

}  // namespace

TEST_CASE("an encoder and a decoder over processes have the bits of padding in one") {
  using one = Of<>;
  using many = Of<Between, Stages<4>, Steady<>, Lengths<>>;
  if (Between::processes() > 4) return;  // replicas
  one padded({.seed = 3});
  many dense({.seed = 3});
  std::vector<int> asked(std::size_t(one::samples * context), -1),
      answer(std::size_t(one::samples * 16), -1), labels(answer);
  for (std::size_t s = 0; s < std::size_t(one::samples); ++s) {
    for (std::size_t i = 0; i < 3 * (8 - s); ++i) asked[s * context + i] = int((7 * s + i) % words);
    for (std::size_t i = 0; i < 2 * s + 1; ++i) {
      answer[s * 16 + i] = int((5 * s + i) % 13);
      labels[s * 16 + i] = int((3 * s + i) % 13);
    }
  }
  typename one::batch whole{asked, labels};
  typename many::batch given{asked, labels};
  whole.set<"answer">(answer);
  given.set<"answer">(answer);
  CHECK(laws::same_bits(padded.evaluate(whole), dense.evaluate(given)));
  CHECK(dense.train(std::vector(4, given), [&](step_result const& b) {
    step_result const a = padded.step(whole);
    CHECK(laws::same_losses(a, b));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
  }) == 4);
  CHECK(processes::same_parameters(padded, dense));
}
