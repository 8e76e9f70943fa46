// SPDX-License-Identifier: BSL-1.0
//
// Transformers of text, as published.
#pragma once

#include "parts.hpp"

namespace models {

/// GPT-2 of L layers, width C and H heads: Radford et al., 2019. The head shares the table of the
/// embedding. V tokens in the vocabulary, N in a context.
template <int L, int C, int H, int V = 50257, int N = 1024>
struct Gpt2 : Model<Tokens<V, N>, Named<"wte", Embedding<C>>, Named<"wpe", Positions>,
                    Named<"h", Repeat<L, Residual<LayerNorm, Attention<H>>,
                                      Residual<LayerNorm, Linear<4 * C>, GELUTanh, Linear<C>>>>,
                    Named<"ln_f", LayerNorm>, Tied<"wte">, CrossEntropy> {
  static constexpr int depth = L;
};

using Gpt2Small = Gpt2<12, 768, 12>;
using Gpt2Xl = Gpt2<48, 1600, 25>;

/// LLaMA of L layers, width C, F hidden units, H heads of which K have keys and values, and a
/// vocabulary of V: Touvron et al., 2023; Grattafiori et al., 2024. Base: of the rotary positions.
/// Head: small models share the table of the embedding. N tokens in a context.
template <int L, int C, int F, int H, int K, int V, int Base,
          class Head = Named<"lm_head", Linear<V, NoBias>>, int N = 2048>
struct Llama
    : Model<Tokens<V, N>, Named<"embed_tokens", Embedding<C>>,
            Named<"layers", Repeat<L,
                                   Residual<With<RMSNorm, Epsilon<1, 100'000>>,
                                            Attention<H, KeyValueHeads<K>, RoPE<Base>, NoBias>>,
                                   Residual<With<RMSNorm, Epsilon<1, 100'000>>,
                                            Linear<2 * F, NoBias>, SwiGLU, Linear<C, NoBias>>>>,
            Named<"norm", With<RMSNorm, Epsilon<1, 100'000>>>, Head, CrossEntropy> {
  static constexpr int depth = L;
};

using Llama2x7B = Llama<32, 4096, 11008, 32, 32, 32000, 10000>;
using Llama2x13B = Llama<40, 5120, 13824, 40, 40, 32000, 10000>;
using Llama2x70B = Llama<80, 8192, 28672, 64, 8, 32000, 10000>;
using Llama3x8B = Llama<32, 4096, 14336, 32, 8, 128256, 500000>;
using Llama3x70B = Llama<80, 8192, 28672, 64, 8, 128256, 500000>;
using TinyLlama = Llama<22, 2048, 5632, 32, 4, 32000, 10000>;
using SmolLm135M = Llama<30, 576, 1536, 9, 3, 49152, 10000, Tied<"embed_tokens">>;

/// T(L, H, A): L layers in the encoder and in the decoder, H hidden units, A heads of 64 elements,
/// width 1024: Huang et al., GPipe, 2019, section 5. Its matrices have the paper's 400 million
/// numbers in T(6, 8192, 16); biases are left out, and norms come on top.
template <int L, int H, int A>
struct T : Model<Tokens<64000, 128>, Embedding<1024>, SinusoidalPositions,
                 Repeat<L, Residual<LayerNorm, Attention<A, HeadSize<64>, NotCausal, NoBias>>,
                        Residual<LayerNorm, Linear<H, NoBias>, ReLU, Linear<1024, NoBias>>>,
                 Stash<"source">, Named<"target", Tokens<64000, 128>>,
                 Named<"table", Embedding<1024>>, SinusoidalPositions,
                 Repeat<L, Residual<LayerNorm, Attention<A, HeadSize<64>, NoBias>>,
                        Residual<LayerNorm, CrossAttention<A, "source", HeadSize<64>, NoBias>>,
                        Residual<LayerNorm, Linear<H, NoBias>, ReLU, Linear<1024, NoBias>>>,
                 Tied<"table">, CrossEntropy> {};

using T6x8192x16 = T<6, 8192, 16>;
using T64x16384x32 = T<64, 16384, 32>;

}  // namespace models
