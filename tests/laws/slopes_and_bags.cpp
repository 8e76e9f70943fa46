// SPDX-License-Identifier: BSL-1.0
//
// The laws for PReLU and EmbeddingBag: gradients are central differences, and neither cuts nor
// threads nor recomputation nor replicas change a bit.
#include "catch.hpp"

#include <vector>

#include "laws/eager.hpp"
#include "laws/every_layer.hpp"
#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

/// Pictures with slopes of channels; slopes as the first layer, whose input needs no gradient.
struct Pictures
    : Model<Input<4, 5, 3>, PReLU, Conv2d<6, 3>, With<PReLU, PerChannel>, BatchNorm, PReLU,
            Conv2d<3, 2, NoBias>, With<PReLU, PerChannel>, MeanPool, Linear<4>, CrossEntropy> {};
/// Widths above and below the vectors of every instruction set, on their own and fused.
struct Wide : Model<Input<2, 67>, PReLU, With<PReLU, PerChannel>, Linear<33>, PReLU, Linear<37>,
                    With<PReLU, PerChannel>, Linear<5>, MSE> {};
/// More slopes one after the other than a kernel group has room for.
using Steep = With<PReLU, NegativeSlope<9, 10>>;
struct Long : Model<Input<2, 5>, Linear<6>, Steep, Steep, Steep, Steep, Steep, Steep, Steep, Steep,
                    Steep, Linear<3>, MSE> {};
/// One id of a bag, and a table that is the output's weights too.
struct Single : Model<Named<"item", Tokens<13, 1>>, Named<"table", EmbeddingBag<8>>, Tanh,
                      Linear<8>, Tied<"table">, CrossEntropy> {};
using Bag = laws::EveryBag<PaddingIndex<3>>;

template <class M, class... More>
using Trained = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<3>, More...>;

}  // namespace

TEST_CASE("bags of ids and trained slopes obey the laws", "[laws]") {
  laws::obeys<laws::EveryBag<>>(1);
  laws::gradients_are_differences<laws::EveryBag<Reduction<Sum>, PaddingIndex<0>>>(2);
  laws::cuts_keep_the_bits_everywhere<Bag>(3);
  laws::gradients_are_differences<Single>(4);
}
TEST_CASE("trained slopes obey the laws", "[laws]") {
  laws::gradients_are_differences<Pictures>(1);
  laws::cuts_keep_the_bits_everywhere<Wide>(2);
  laws::obeys<Long>(3);
}
TEST_CASE("threads, recomputation and replicas keep the bits of bags and slopes", "[laws]") {
  laws::train_alike_from_the_start<Trained<Bag>,
                                   Pipeline<Bag, laws::Eager<PortableHost>, AdamW, MicroBatches<4>,
                                            MicroBatchSize<3>, HostThreads<3>>>(5, 2);
  laws::train_alike_from_the_start<Trained<Wide>,
                                   Pipeline<Wide, laws::Eager<PortableHost>, AdamW, MicroBatches<4>,
                                            MicroBatchSize<3>, HostThreads<5>, Stages<2>>>(6, 2);
  laws::train_alike_from_the_start<Trained<Bag>, Trained<Bag, RecomputeAll, Stages<3>>>(7, 2);
  laws::train_alike_from_the_start<Trained<Pictures>, Trained<Pictures, RecomputeAll, Stages<2>>>(
      8, 2);
  laws::train_alike_from_the_start<Trained<Bag>, Trained<Bag, StageReplicas<2, 1>>>(9, 2);
}

namespace {

/// A sample of padding alone, and rows of the table that no sample reads.
template <class... Options>
struct Bags : Model<Tokens<6, 3>, EmbeddingBag<2, Init<Normal<1>>, Options...>, MSE> {};

}  // namespace

TEST_CASE("a bag leaves padding out, and its table's other rows have no gradient", "[nn]") {
  Pipeline<Bags<PaddingIndex<1>>, PortableHost, SGD> trainer({.seed = 3});
  std::vector<float> y(2);
  trainer.forward(std::vector{1, -1, 1}, y);
  CHECK(y == std::vector<float>{0, 0});
  auto const table = trainer.parameters()[0];
  trainer.forward(std::vector{4, 1, -1}, y);
  CHECK(y == std::vector<float>{table.values[8], table.values[9]});
  trainer.forward(std::vector{4, -1, 2}, y);
  for (int c : {0, 1})
    CHECK(y[std::size_t(c)] ==
          (table.values[std::size_t(8 + c)] + table.values[std::size_t(4 + c)]) / 2);

  std::vector<float> const before(table.values.begin(), table.values.end());
  std::vector<int> const ids{4, 1, -1};
  std::vector<float> const labels{9, -9};
  trainer.step({ids, labels});
  for (std::size_t i = 0; i < before.size(); ++i) {
    INFO("row " << i / 2);
    CHECK((table.values[i] == before[i]) == (i / 2 != 4));
    CHECK((table.gradients[i] == 0) == (i / 2 != 4));
  }
}
