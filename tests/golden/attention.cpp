// SPDX-License-Identifier: BSL-1.0
//
// Every kind of attention against PyTorch: outputs, loss and all gradients, each with and without
// samples that end in ids of -1. The models are those of attention_cases() in write_golden.py.
#include "golden/record.hpp"

using namespace pp;

namespace {

template <class M>
void check(std::string const& name) {
  using trainer = Pipeline<M, PortableHost, MicroBatches<2>, MicroBatchSize<2>>;
  golden::check_model<trainer>("attention", name);
  golden::check_model<trainer>("attention", name + ".padded");
}

/// Hides every third distance.
struct Gaps {
  PIPE_HD static constexpr bool visible(int query, int key) { return (query - key) % 3 != 0; }
};
template <int Heads, class... Options>
struct Attends : Model<Tokens<13, 7>, Embedding<12>, Linear<12>, Attention<Heads, Options...>,
                       Linear<5>, MSE> {};
template <int Width, class... Options>
struct Reads : Model<Tokens<13, 7>, Embedding<Width>, Linear<Width>, Stash<"memory">,
                     Named<"target", Tokens<9, 4>>, Embedding<12>, Linear<12>,
                     CrossAttention<3, "memory", Options...>, Linear<5>, MSE> {};

}  // namespace

TEST_CASE("Attention is torch.nn.MultiheadAttention", "[golden]") { check<Attends<3>>("causal"); }
TEST_CASE("grouped-query attention is PyTorch's", "[golden]") {
  check<Attends<6, KeyValueHeads<2>>>("grouped");
  check<Attends<3, KeyValueHeads<1>, NotCausal, NoBias>>("multi_query");
}
TEST_CASE("RoPE is that of Hugging Face's Llama", "[golden]") {
  check<Attends<6, KeyValueHeads<3>, RoPE<500000>, NotCausal>>("rope_grouped");
}
TEST_CASE("rules for scores are those of Hugging Face's models", "[golden]") {
  check<Attends<3, KeyValueHeads<1>, HeadSize<6>, RoPE<>, Window<3>>>("window");       // Mistral
  check<Attends<6, ALiBi>>("alibi");                                                   // BLOOM
  check<Attends<2, Prefix<3>, SoftCap<1, 2>>>("capped_prefix");                        // Gemma 2
  check<Attends<4, KeyValueHeads<2>, HeadSize<4>, RoPE<>, QKNorm<>>>("normed_heads");  // Qwen 3
}
TEST_CASE("CrossAttention is PyTorch's", "[golden]") {
  check<Reads<12>>("cross");
  check<Reads<8, NoBias>>("cross_no_bias");
  check<Reads<12, KeyValueHeads<1>, HeadSize<5>, SoftCap<1, 2>, Mask<Gaps>>>("cross_scored");
}
