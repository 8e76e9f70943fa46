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
                                      Residual<LayerNorm, Linear<4 * C>, GELU, Linear<C>>>>,
                    Named<"ln_f", LayerNorm>, Tied<"wte">, CrossEntropy> {
  static constexpr int depth = L;
};

struct Gpt2Small : Gpt2<12, 768, 12> {};
struct Gpt2Xl : Gpt2<48, 1600, 25> {};
static_assert(parameters_of<Gpt2Small>() == 124'439'808);
static_assert(parameters_of<Gpt2<24, 1024, 16>>() == 354'823'168);
static_assert(parameters_of<Gpt2<36, 1280, 20>>() == 774'030'080);
static_assert(parameters_of<Gpt2Xl>() == 1'557'611'200);

/// LLaMA of L layers, width C, F hidden units, H heads of which K have keys and values, and a
/// vocabulary of V: Touvron et al., 2023; Grattafiori et al., 2024. Base: of the rotary positions.
/// Head: small models share the table of the embedding. N tokens in a context.
template <int L, int C, int F, int H, int K, int V, int Base,
          class Head = Named<"lm_head", Linear<V, NoBias>>, int N = 2048>
struct Llama
    : Model<Tokens<V, N>, Named<"embed_tokens", Embedding<C>>,
            Named<"layers", Repeat<L,
                                   Residual<RMSNormWith<Epsilon<1, 100'000>>,
                                            Attention<H, KeyValueHeads<K>, RoPE<Base>, NoBias>>,
                                   Residual<RMSNormWith<Epsilon<1, 100'000>>, Linear<2 * F, NoBias>,
                                            SwiGLU, Linear<C, NoBias>>>>,
            Named<"norm", RMSNormWith<Epsilon<1, 100'000>>>, Head, CrossEntropy> {
  static constexpr int depth = L;
};

struct Llama2x7B : Llama<32, 4096, 11008, 32, 32, 32000, 10000> {};
struct Llama2x70B : Llama<80, 8192, 28672, 64, 8, 32000, 10000> {};
struct Llama3x8B : Llama<32, 4096, 14336, 32, 8, 128256, 500000> {};
struct Llama3x70B : Llama<80, 8192, 28672, 64, 8, 128256, 500000> {};
struct TinyLlama : Llama<22, 2048, 5632, 32, 4, 32000, 10000> {};
struct SmolLm135M : Llama<30, 576, 1536, 9, 3, 49152, 10000, Tied<"embed_tokens">> {};
static_assert(parameters_of<TinyLlama>() == 1'100'048'384);
static_assert(parameters_of<SmolLm135M>() == 134'515'008);
static_assert(parameters_of<Llama2x7B>() == 6'738'415'616);
static_assert(parameters_of<Llama2x70B>() == 68'976'648'192);
static_assert(parameters_of<Llama3x8B>() == 8'030'261'248);
static_assert(parameters_of<Llama3x70B>() == 70'553'706'496);

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

struct T6x8192x16 : T<6, 8192, 16> {};
struct T64x16384x32 : T<64, 16384, 32> {};
inline constexpr long norms_of_a_layer = 5 * 2 * 1024;
static_assert(parameters_of<T6x8192x16>() == 407'896'064 + 6 * norms_of_a_layer);
static_assert(parameters_of<T<12, 16384, 32>>() == 1'238'368'256 + 12 * norms_of_a_layer);
static_assert(parameters_of<T64x16384x32>() == 6'036'652'032 + 64 * norms_of_a_layer);

}  // namespace models
