// SPDX-License-Identifier: BSL-1.0
//
// BERT: Devlin et al., BERT: pre-training of deep bidirectional Transformers, 2019.
#pragma once

#include "parts.hpp"

namespace models {

/// BERT of L layers, width C and H heads, with its pooler and a classifier. Norms come after the
/// sums. A batch has the kinds of its tokens as "types". V words, texts of at most T.
template <int L, int C, int H, int V = 30522, int T = 512, int Classes = 2>
struct Bert : Model<Tokens<V, T>, Named<"words", Embedding<C>>, Named<"positions", Positions>,
                    Stash<"words">, Named<"types", Tokens<2, T>>, Named<"kinds", Embedding<C>>,
                    Pop<"words">, Named<"norm", With<LayerNorm, Epsilon<1, 1'000'000'000'000>>>,
                    Named<"layers", Repeat<L, Residual<Attention<H, NotCausal>>,
                                           With<LayerNorm, Epsilon<1, 1'000'000'000'000>>,
                                           Residual<Linear<4 * C>, GELU, Linear<C>>,
                                           With<LayerNorm, Epsilon<1, 1'000'000'000'000>>>>,
                    FirstPosition, Named<"pooler", Linear<C>>, Tanh,
                    Named<"classifier", Linear<Classes>>, CrossEntropy> {
  static constexpr int depth = L;
};

using BertBase = Bert<12, 768, 12>;
using BertLarge = Bert<24, 1024, 16>;

}  // namespace models
