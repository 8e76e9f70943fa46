// SPDX-License-Identifier: BSL-1.0
//
// The law of division: the planes of a stage together have exactly the gradients of the whole
// graph, in a field where sums are exact. For models of every family, for random graphs whose ops
// read their operands as random types, and not for runs with a planted fault.
#include "catch.hpp"

#include "laws/field.hpp"

#include <pipe/pipe.hpp>

using namespace pp;
using laws::fault;
using laws::number;

namespace {

using Block = Seq<Residual<LayerNorm, Attention<6>, Dropout<1, 10>>,
                  Residual<LayerNorm, Linear<48>, GELU, Linear<24>, Dropout<1, 10>>>;
template <int Tokens_, int Copies>
struct GPT
    : Model<Tokens<Tokens_, 8>, Named<"wte", Embedding<24>>, Positions, Repeat<Copies, Block>,
            LayerNorm, Tied<"wte">, With<CrossEntropy, LabelSmoothing<1, 10>, ZLoss<1, 10000>>> {};
using Llama = Seq<Residual<RMSNorm, Attention<8, KeyValueHeads<2>, RoPE<10000>, NoBias>>,
                  Residual<RMSNorm, Linear<2 * 32, NoBias>, SwiGLU, Linear<16, NoBias>>>;
struct LLaMA : Model<Tokens<32, 8>, Embedding<16>, Repeat<2, Llama>, RMSNorm, Linear<32, NoBias>,
                     CrossEntropy> {};
struct Normed : Model<Tokens<32, 8>, Embedding<16>,
                      Residual<RMSNorm, Attention<8, KeyValueHeads<4>, QKNorm<>, NoBias>>, RMSNorm,
                      Linear<32, NoBias>, CrossEntropy> {};
struct AlexNet : Model<Input<15, 15, 3>, Conv2d<16, 5, Stride<2>>, ReLU, LocalResponseNorm<5>,
                       MaxPool2d<2, Stride<2>>, Conv2d<32, 5, Padding<2>, Groups<2>>, ReLU,
                       LocalResponseNorm<5>, MaxPool2d<2, Stride<1>>, Conv2d<32, 3, Padding<1>>,
                       ReLU, Conv2d<32, 3, Padding<1>, Groups<2>>, ReLU, FlattenChannelsFirst,
                       Dropout<1, 2>, Linear<64>, ReLU, Linear<12>, CrossEntropy> {};
struct Translator
    : Model<Tokens<32, 8>, Embedding<16>, Residual<LayerNorm, Attention<4, NotCausal>>, Stash<"m">,
            Named<"t", Tokens<32, 8>>, Embedding<16>, Residual<LayerNorm, CrossAttention<4, "m">>,
            Residual<LayerNorm, CrossAttention<4, "m">>, LayerNorm, Linear<32>, CrossEntropy> {};
struct Adapted : Model<Tokens<32, 8>, Embedding<24>, Repeat<2, LoRA<Block, 3, Alpha<6>>>, LayerNorm,
                       Linear<32>, CrossEntropy> {};
struct ViT : Model<Input<8, 8, 3>, PatchEmbedding<16, 4>, ClassToken, Positions,
                   Repeat<2, Seq<Residual<LayerNorm, Attention<4, NotCausal>>,
                                 Residual<LayerNorm, Linear<32>, GELU, Linear<16>>>>,
                   LayerNorm, MeanPool, Linear<8>, CrossEntropy> {};
/// Widths that two, four and eight planes divide or do not.
struct MLP : Model<Input<6>, Linear<16>, ReLU, Linear<12>, Tanh, Linear<15>, PReLU, Linear<16>,
                   Linear<7>, CrossEntropy> {};
/// Copies that a walk would divide in turn by columns and by rows.
struct Deep : Model<Input<16>, Repeat<5, Linear<16>, ReLU>, Linear<3>, MSE> {};
struct Images
    : Model<Input<8, 8, 3>, Conv2d<16, 3, Padding<1>>, BatchNorm, ReLU, Conv2d<16, 3>, GroupNorm<8>,
            ReLU, ConvTranspose2d<8, 2, Stride<2>>, Flatten, Linear<8>, MSE> {};
/// One weight in several places.
struct Shared
    : Model<Input<16>, Named<"w", Linear<16>>, ReLU, Tied<"w">, ReLU, Tied<"w">, Linear<4>, MSE> {};
struct Torn : Model<Input<16>, Named<"w", Linear<32>>, SwiGLU, Tied<"w">, ReLU, Linear<4>, MSE> {};
struct Reversed
    : Model<Input<8, 16>, Reversible<Seq<LayerNorm, Linear<8>>, Seq<LayerNorm, Linear<8>>>,
            Linear<4>, CrossEntropy> {};

/// Logits that planes divide by rows, as the one weight before them is not divided.
struct LossByRows : Model<Tokens<32, 8>, Embedding<16>, LayerNorm, CrossEntropy> {};

template <class M>
laws::field_result run(int planes, number seed, fault planted = fault::none) {
  return laws::run_in_field(M::graph, planes, seed, planted);
}
template <class M>
void law(char const* name) {
  for (number seed = 1; seed <= 3; ++seed) {
    laws::field_result const whole = run<M>(1, seed);
    for (int planes : {2, 4, 8}) {
      INFO(name << ", " << planes << " planes, seed " << seed);
      laws::field_result const divided = run<M>(planes, seed);
      CHECK((divided.logits == whole.logits));
      CHECK(divided.disagreements == 0);
      for (std::size_t p = 0; p < whole.gradients.size(); ++p) {
        INFO("parameter " << p);
        CHECK((divided.gradients[p] == whole.gradients[p]));
      }
    }
  }
}

}  // namespace

TEST_CASE("planes together have the gradients of the whole graph", "[division]") {
  law<MLP>("MLP");
  law<Deep>("copies");
  law<GPT<32, 2>>("GPT");
  law<GPT<33, 5>>("GPT with a padded vocabulary");
  law<LLaMA>("LLaMA");
  law<Normed>("QKNorm");
  law<AlexNet>("AlexNet");
  law<Translator>("encoder and decoder");
  law<Adapted>("LoRA");
  law<ViT>("ViT");
  law<Images>("images");
  law<Shared>("ties");
  law<Torn>("ties that want different boxes");
  law<Reversed>("Reversible");
}

namespace {

/// The number of the first three seeds for which a run with a planted fault differs from the whole.
template <class M>
int found(fault planted, int planes) {
  int n = 0;
  for (number seed = 1; seed <= 3; ++seed) n += run<M>(planes, seed, planted) != run<M>(1, seed);
  return n;
}

}  // namespace

TEST_CASE("the law finds planted faults", "[division]") {
  using Padded = GPT<33, 2>;
  // In most of these runs every logit is right.
  CHECK(found<Padded>(fault::none, 2) == 0);
  CHECK(found<Padded>(fault::sum_of_backward_is_forgotten, 2) == 3);
  CHECK(found<Padded>(fault::sum_of_parameters_is_forgotten, 2) == 3);
  CHECK(found<Padded>(fault::sum_of_norms_is_forgotten, 2) == 3);
  CHECK(found<Padded>(fault::dropout_by_place_in_part, 2) == 3);
  CHECK(found<Padded>(fault::label_by_column_of_part, 2) == 3);
  CHECK(found<Padded>(fault::class_weight_by_column_of_part, 2) == 3);
  CHECK(found<Padded>(fault::vocabulary_of_part, 2) == 3);
  CHECK(found<Padded>(fault::statistics_of_own_columns, 2) == 3);
  CHECK(found<Padded>(fault::padding_is_counted, 2) == 3);
  CHECK(found<Padded>(fault::table_begins_at_row_0, 2) == 3);
  CHECK(found<Padded>(fault::runs_are_one_range, 2) == 3);
  // 6 heads are whole on 4 planes, whose columns are gathered and divided again.
  CHECK(found<Padded>(fault::own_part_is_the_first, 4) == 3);
  CHECK(found<Padded>(fault::parts_are_gathered_as_one_range, 4) == 3);
  CHECK(found<LossByRows>(fault::none, 2) == 0);
  CHECK(found<LossByRows>(fault::label_by_row_of_part, 2) == 3);
}
