// SPDX-License-Identifier: BSL-1.0
//
// Models that may be cut inside of their residuals and branches: the gradients, the bits and the
// names of the model that may not, under every cut.
#include "catch.hpp"

#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"
#include "laws/random_model.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

/// Whole and cut inside, the same layers: as Group and as CutInside.
template <template <class...> class Block>
struct Blocks
    : Model<Tokens<11, 6>, Embedding<6>, Positions,
            Repeat<3, Block<Residual<LayerNorm, Attention<2>>,
                            Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>, Dropout<1, 4>>>>,
            Linear<11>, CrossEntropy> {};
/// Residuals in residuals, branches in branches, and parts without ops.
template <template <class...> class Block>
struct Nested
    : Model<Input<2, 6>,
            Block<Residual<Identity>,
                  Residual<Repeat<4, Linear<6>, Tanh>, Residual<Linear<6>, Residual<SiLU>>>,
                  SumOf<Seq<Linear<5>, ReLU, Linear<6>>, Identity, Residual<Linear<6, NoBias>>>,
                  Stash<"x">, ConcatOf<Linear<2>, Seq<Tanh, Linear<4>>, Named<"z", Recall<"x">>>,
                  ProductOf<Seq<Linear<6>, Sigmoid>, Linear<6>>,
                  Residual<Linear<4>, LayerNorm, Reshape<8>, Linear<8>, Reshape<2, 4>, Linear<6>>,
                  DotOf<Linear<5>, Seq<Linear<5>, Tanh>>, Flatten>,
            MSE> {};
/// Attention as a layer of its own, to another sequence, tied, and in a Frozen and a LoRA.
template <template <class...> class Block>
struct Attentive
    : Model<Tokens<9, 4>, Embedding<6>, Stash<"source">,
            Block<Named<"a", Attention<3, RoPE<>, QKNorm<>>>, Frozen<Residual<Attention<2>>>,
                  Residual<LayerNorm, CrossAttention<2, "source">>, Tied<"a">,
                  LoRA<Residual<Attention<1, NoBias>, Linear<6>>, 2>>,
            Linear<9>, CrossEntropy> {};
template <unsigned Seed, template <class...> class Block>
struct Random : Model<Input<2, 5>, Block<typename laws::RandomLayers<Seed, 6>::type>, Linear<3>,
                      CrossEntropy> {};

template <class M, int MicroBatchCount, class... More>
using Trained =
    Pipeline<M, PortableHost, AdamW, MicroBatches<MicroBatchCount>, MicroBatchSize<2>, More...>;

/// The model in one stage, as a whole, against the model cut inside.
template <class Whole, class Inside, int MicroBatchCount, class... More>
void bits_are_equal() {
  laws::same_as_one_stage<Trained<Whole, MicroBatchCount>,
                          Trained<Inside, MicroBatchCount, More...>>(5, 2);
}
template <class Whole, class Inside>
void names_are_equal() {
  auto const a = detail::parameter_names<Whole>(), b = detail::parameter_names<Inside>();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].name == b[i].name);
}

template <class M>
inline constexpr int units = M::graph.size.units;

}  // namespace

TEST_CASE("a model that is cut inside has a layer for each part of a residual", "[laws]") {
  CHECK(units<Blocks<Group>> == 2 + 3 * 2 + 1);
  CHECK(units<Blocks<CutInside>> == 2 + 3 * 9 + 1);
}
TEST_CASE("the names of parameters do not depend on where a model may be cut", "[laws]") {
  names_are_equal<Blocks<Group>, Blocks<CutInside>>();
  names_are_equal<Nested<Group>, Nested<CutInside>>();
  names_are_equal<Attentive<Group>, Attentive<CutInside>>();
  names_are_equal<Random<3, Group>, Random<3, CutInside>>();
}
TEST_CASE("cuts inside keep the bits of the whole", "[laws]") {
  bits_are_equal<Blocks<Group>, Blocks<CutInside>, 4>();
  bits_are_equal<Blocks<Group>, Blocks<CutInside>, 4, Stages<units<Blocks<CutInside>>>>();
  bits_are_equal<Blocks<Group>, Blocks<CutInside>, 5, Stages<4>, laws::MixedWeights>();
  bits_are_equal<Blocks<Group>, Blocks<CutInside>, 4, Stages<7>, GPipe, RecomputeAll>();
}
TEST_CASE("cuts inside of nested layers keep the bits of the whole", "[laws]") {
  bits_are_equal<Nested<Group>, Nested<CutInside>, 4, Stages<units<Nested<CutInside>>>>();
  bits_are_equal<Nested<Group>, Nested<CutInside>, 5, Stages<6>, laws::MixedWeights>();
}
TEST_CASE("cuts inside of attentions keep the bits of the whole", "[laws]") {
  bits_are_equal<Attentive<Group>, Attentive<CutInside>, 4, Stages<units<Attentive<CutInside>>>>();
  bits_are_equal<Attentive<Group>, Attentive<CutInside>, 4, Stages<5>, RecomputeAll>();
}
TEST_CASE("cuts inside of random models keep the bits of the whole", "[laws]") {
  bits_are_equal<Random<3, Group>, Random<3, CutInside>, 4, Stages<units<Random<3, CutInside>>>>();
  bits_are_equal<Random<8, Group>, Random<8, CutInside>, 5, Stages<3>, laws::MixedWeights>();
}
TEST_CASE("gradients across cuts inside are central differences", "[laws]") {
  laws::gradients_hold<Pipeline<Nested<CutInside>, FP64, PortableHost, MicroBatches<2>,
                                MicroBatchSize<2>, Stages<9>, RecomputeAll>>(3);
}
TEST_CASE("with values of 16 bits no bit depends on the cuts inside", "[laws]") {
  using inside = Blocks<CutInside>;
  laws::same_as_one_stage<Trained<inside, 4, BF16>,
                          Trained<inside, 4, BF16, Stages<units<inside>>>>(5, 2);
}
