// SPDX-License-Identifier: BSL-1.0
//
// Every layer but attention against PyTorch: outputs, loss and all gradients. The models are those
// of layer_cases() in write_golden.py; a Linear before the layer shows the gradient of its input.
#include "golden/record.hpp"

using namespace pp;

namespace {

template <class M>
void check(char const* name) {
  golden::check_in_two<M>("layers", name);
}

struct Linears : Model<Input<5>, Linear<7>, Linear<4, NoBias>, Linear<3>, MSE> {};
template <class F>
struct Activated : Model<Input<5>, Linear<9>, F, Linear<3>, MSE> {};
template <class L>
struct OfRows : Model<Input<3, 5>, Linear<9>, L, Linear<2>, MSE> {};
template <class L>
struct Gated : Model<Input<3, 5>, Linear<14>, L, Linear<2>, MSE> {};
struct Words : Model<Tokens<11, 6>, Embedding<5>, Linear<3>, MSE> {};
template <class L>
struct Placed : Model<Tokens<11, 6>, Embedding<5>, L, Linear<3>, MSE> {};
template <class Pool>
struct Pooled : Model<Tokens<11, 6>, Embedding<5>, Tanh, Pool, Linear<3>, CrossEntropy> {};
template <class Bag>
struct Bagged : Model<Tokens<11, 6>, Bag, Linear<3>, MSE> {};
struct Sloped : Model<Input<3, 5>, Linear<9>, With<PReLU, PerChannel>, Linear<2>, PReLU, MSE> {};
struct SlopedImage : Model<Input<4, 5, 3>, With<PReLU, PerChannel>, Linear<2>,
                           With<PReLU, PerChannel>, Flatten, Linear<3>, MSE> {};
struct Epsilons : Model<Input<3, 5>, Linear<9>, With<LayerNorm, Epsilon<1, 2>>, Linear<9>,
                        With<RMSNorm, Epsilon<1, 1000>>, Linear<2>, MSE> {};
template <class... Over>
struct Batches
    : Model<Input<3, 5>, Linear<7, NoBias>, With<BatchNorm, Over...>, ReLU, Linear<6, NoBias>,
            With<BatchNorm, Epsilon<1, 4>, Momentum<1, 2>, Over...>, Linear<2>, MSE> {};
struct SampleNorms
    : Model<Input<3, 5>, Linear<6>, GroupNorm<2>, Tanh, Linear<4, NoBias>, InstanceNorm, SiLU,
            Linear<7>, LocalResponseNorm<5, ResponseScale<1, 2>, ResponseOffset<2>>, Linear<2>,
            MSE> {};

}  // namespace

TEST_CASE("Linear is PyTorch's", "[golden]") { check<Linears>("linear"); }
TEST_CASE("activations are PyTorch's", "[golden]") {
  check<Activated<ReLU>>("relu");
  check<Activated<Tanh>>("tanh");
  check<Activated<Sigmoid>>("sigmoid");
  check<Activated<SiLU>>("silu");
  check<Activated<GELUTanh>>("gelu");
  check<Activated<GELU>>("gelu_erf");
  check<Activated<ClipLogits<3, 4>>>("clip_logits");
  check<Activated<SoftCap<3, 2>>>("soft_cap");
}
TEST_CASE("trained slopes are PyTorch's", "[golden]") {
  check<Activated<PReLU>>("prelu");
  check<Sloped>("prelu.channels");
  check<SlopedImage>("prelu.image");
}
TEST_CASE("layers that work on rows are PyTorch's", "[golden]") {
  check<OfRows<LayerNorm>>("layer_norm");
  check<OfRows<RMSNorm>>("rms_norm");
  check<OfRows<Softmax>>("softmax");
}
TEST_CASE("another epsilon is PyTorch's", "[golden]") { check<Epsilons>("epsilon"); }
TEST_CASE("a batch norm is PyTorch's on micro-batches, its running statistics on the mini-batch",
          "[golden]") {
  check<Batches<>>("batch_norm");
  // Two samples are a group of the one micro-batch.
  golden::check_model<Pipeline<Batches<SyncOver<2>>, PortableHost, MicroBatchSize<4>>>(
      "layers", "batch_norm");
}
TEST_CASE("norms of single samples are PyTorch's", "[golden]") {
  check<SampleNorms>("sample_norms");
}
TEST_CASE("pools are PyTorch's over the positions that are tokens", "[golden]") {
  check<Pooled<MeanPool>>("pool.mean");
  check<Pooled<FirstPosition>>("pool.first");
  check<Pooled<LastPosition>>("pool.last");
}
TEST_CASE("gated units are PyTorch's", "[golden]") {
  check<Gated<SwiGLU>>("swiglu");
  check<Gated<GEGLU>>("geglu");
  check<Gated<GLU>>("glu");
}
TEST_CASE("embeddings and positions are PyTorch's", "[golden]") {
  check<Words>("embedding");
  check<Placed<Positions>>("positions");
  check<Placed<SinusoidalPositions>>("sinusoidal");
}
TEST_CASE("bags of ids are PyTorch's", "[golden]") {
  check<Bagged<EmbeddingBag<5>>>("embedding_bag.mean");
  check<Bagged<EmbeddingBag<5, Reduction<Sum>>>>("embedding_bag.sum");
  check<Bagged<EmbeddingBag<5, PaddingIndex<3>>>>("embedding_bag.mean.padding_idx");
  check<Bagged<EmbeddingBag<5, Reduction<Sum>, PaddingIndex<3>>>>("embedding_bag.sum.padding_idx");
  check<Bagged<EmbeddingBag<5, Reduction<Mean>>>>("embedding_bag.mean.padded");
  check<Bagged<EmbeddingBag<5, Reduction<Sum>>>>("embedding_bag.sum.padded");
}
