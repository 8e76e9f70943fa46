// SPDX-License-Identifier: BSL-1.0
//
// In FP64 the constants of layers and losses are fp64: outputs, losses and gradients, those of
// inputs among them, to 1e-13 of PyTorch's in float64. The constants are no floats; the cases are
// those of fp64_cases() in write_golden.py.
#include "golden/record.hpp"

using namespace pp;

namespace {

template <class M>
void check(char const* name) {
  using option = std::conditional_t<M::graph.inputs[0].is_ids, NoInputGradients, InputGradients>;
  golden::check_model<Pipeline<M, FP64, PortableHost, MicroBatches<2>, MicroBatchSize<2>, option>>(
      "fp64", name, 1e-13);
}

struct Norms : Model<Input<3, 5>, Linear<9>, LayerNorm, Linear<9>, With<LayerNorm, Epsilon<1, 10>>,
                     Linear<9>, With<RMSNorm, Epsilon<1, 10>>, Linear<9>,
                     With<RMSNorm, Epsilon<1, 3>>, Linear<9>, Linear<2>, MSE> {};
struct GroupNorms
    : Model<Input<3, 5>, Linear<6>, GroupNorm<2>, Tanh, Linear<6>, GroupNorm<3, Epsilon<1, 10>>,
            Tanh, Linear<6, NoBias>, InstanceNorm, Linear<2>, MSE> {};
struct BatchNorms : Model<Input<3, 5>, Linear<9, NoBias>, BatchNorm, Tanh, Linear<9, NoBias>,
                          With<BatchNorm, Epsilon<1, 10>, Momentum<1, 3>>, Linear<2>, MSE> {};
struct ResponseNorms
    : Model<Input<3, 5>, Linear<9>, LocalResponseNorm<3>, Linear<9>,
            LocalResponseNorm<3, ResponseScale<1, 3>, ResponsePower<2, 3>, ResponseOffset<11, 10>>,
            Linear<9>, Linear<2>, MSE> {};
struct Functions
    : Model<Input<5>, Linear<9>, LeakyReLU, Linear<9>, With<LeakyReLU, NegativeSlope<1, 5>>,
            Linear<9>, With<ELU, Alpha<1, 3>>, Linear<9>, SoftCap<1, 3>, Linear<9>,
            ClipLogits<1, 3>, Linear<9>, Linear<2>, MSE> {};
struct Adapted
    : Model<Input<3, 5>, LoRA<Linear<9>, 3, Alpha<1>>, Tanh, LoRA<Linear<2>, 3, Alpha<2>>, MSE> {};
struct Attends
    : Model<
          Tokens<13, 7>, Embedding<12>, Linear<12>,
          Attention<4, KeyValueHeads<2>, HeadSize<4>, RoPE<>, QKNorm<1, 1'000'000>, SoftCap<1, 3>>,
          Linear<5>, MSE> {};
template <class Loss>
struct Ends : Model<Input<3, 5>, Linear<8>, Tanh, Linear<11>, Loss> {};
struct Several
    : Model<Input<3, 5>, Linear<8>, Tanh, Stash<"early">, Linear<11>,
            Losses<CrossEntropy,
                   FurtherLoss<"kind", "early", LossWeight<1, 10>, Linear<4>, CrossEntropy>>> {};
using Classes = ClassWeights<1, 5, 2, 0, 3, 1, 4, 2, 1, 6, 2>;

}  // namespace

TEST_CASE("constants of norms are fp64", "[golden]") {
  check<Norms>("norms");
  check<GroupNorms>("group_norms");
  check<BatchNorms>("batch_norm");
  check<ResponseNorms>("response_norm");
}
TEST_CASE("constants of other layers are fp64", "[golden]") {
  check<Functions>("functions");
  check<Adapted>("lora");
  check<Attends>("attention");
}
TEST_CASE("constants of losses are fp64", "[golden]") {
  check<Ends<With<CrossEntropy, LabelSmoothing<1, 10>, ZLoss<1, 3>>>>("all_terms");
  check<Ends<With<CrossEntropy, Classes, LabelSmoothing<1, 10>>>>("class_weights");
  check<Ends<Huber<1, 3>>>("huber");
  check<Ends<With<BCE, PosWeight<1, 3>>>>("positive_weight");
  check<Several>("loss_weight");
}
