// SPDX-License-Identifier: BSL-1.0
//
// Hidden values of narrow layers: those that a chain of gradients recomputes are in no record, and
// evaluation stores none; the bits are those of the launches.
#include "cuda/narrow_chains.hpp"

using namespace pp;
using cuda::product_format;
using detail::program;

namespace {

/// Derivatives from what a layer hands on, from what it does not, behind dropout, and of nothing.
struct Deep : Model<Input<17>, Linear<32>, GELUTanh, Dropout<1, 10>, Linear<48, NoBias>, SiLU,
                    Linear<24>, Tanh, Dropout<1, 4>, Linear<33>, ReLU, Linear<10>, Linear<9>, MSE> {
};
/// Tiles that are full, several of them in a block.
struct Full : Model<Input<16, 32>, Linear<64>, GELUTanh, Linear<32>, MSE> {};
/// Three logits in the rows of a tile, which are wider.
struct Classes : Model<Input<20>, Linear<48>, ReLU, Linear<3>, CrossEntropy> {};
struct Two : Model<Input<3, 20>, Linear<24>, ReLU, Linear<6>, MSE> {};

template <class M, int Samples, class... More>
using Trained = Pipeline<M, PortableHost, MicroBatches<2>, MicroBatchSize<Samples>, More...>;
template <class Trainer, class T = float, int S = 0, bool TakesLoss = false>
using programs =
    narrow::programs_of<Trainer, S, T, sizeof(T) == 4 ? product_format::fp32 : product_format::bf16,
                        TakesLoss>;

/// The chain of backward, of which there is one.
template <class Programs>
constexpr detail::launch_chain backward_chain() {
  static_assert(Programs::template chains<program::backward>.count == 1);
  return Programs::template chains<program::backward>[0];
}

}  // namespace

TEST_CASE("which chains recompute, and what their records hold", "[cuda]") {
  // of six layers the inputs of five; a record has the gradient of the loss alone
  using deep = programs<Trained<Deep, 70>>;
  STATIC_REQUIRE(backward_chain<deep>().recomputed == 5);
  STATIC_REQUIRE(backward_chain<deep>().count == 5 + 11);
  STATIC_REQUIRE(deep::layout.bytes.record == detail::align_up(70 * 9 * 4));
  STATIC_REQUIRE(deep::layout.bytes.record * 20 <
                 Trained<Deep, 70>::compiled::passes::programs<0, false>::layout.bytes.record);
  STATIC_REQUIRE(backward_chain<programs<Trained<Two, 9>, bf16>>().recomputed == 1);
  // operands of the recomputed launches come with those of the chain's own
  auto const& backward = deep::launches<program::backward>();
  CHECK(backward.items[0].layer == 11);  // of the last Linear, not of the first
  int operands = 0;
  for (detail::launch const& l : backward.items) operands += l.count;
  CHECK(operands == backward.operands.size());

  // the input of a later stage's first layer is the neighbour's; it is not recomputed
  using first = programs<Trained<Deep, 70, Stages<2>>, float, 0>;
  using last = programs<Trained<Deep, 70, Stages<2>>, float, 1>;
  STATIC_REQUIRE(backward_chain<first>().recomputed + backward_chain<last>().recomputed == 4);

  // B and W apart: W reads what forward has stored
  using apart = programs<Trained<Deep, 70, Stages<2>, ZeroBubbleH1>>;
  STATIC_REQUIRE_FALSE(apart::chains_recompute);
  // the recompute policy has dropped it already
  using dropped = programs<Trained<Deep, 70, RecomputeAll>>;
  STATIC_REQUIRE_FALSE(dropped::chains_recompute);
  // a residual reads what forward has stored
  struct Skips : Model<Input<24>, Linear<24>, ReLU, Residual<Linear<24>>, Linear<6>, MSE> {};
  STATIC_REQUIRE_FALSE(programs<Trained<Skips, 9>>::chains_recompute);
  // the gradient of a weight that is not trained is not there to read its layer's input
  struct Fixed : Model<Input<24>, Linear<24>, ReLU, Frozen<Linear<24>>, ReLU, Linear<6>, MSE> {};
  STATIC_REQUIRE_FALSE(programs<Trained<Fixed, 9>>::chains_recompute);
  // what is read elsewhere has a place
  struct Named : Model<Input<24>, Linear<24>, ReLU, Stash<"x">, Linear<24>, ReLU, Linear<24>,
                       LayerNorm, Pop<"x">, Linear<6>, MSE> {};
  STATIC_REQUIRE(programs<Trained<Named, 9>>::layout.bytes.record >
                 3 * detail::align_up(9 * 24 * 4));
}

TEST_CASE("recomputing chains give the bits of their launches", "[cuda]") {
  using one = Trained<Deep, 70>;
  narrow::are_their_launches<narrow::source<one, float, product_format::fp32>, programs<one>,
                             program::backward, 1>(true);
  using more = Trained<Deep, 300>;
  narrow::are_their_launches<narrow::source<more, bf16, product_format::bf16>, programs<more, bf16>,
                             program::backward, 1>();
  using two = Trained<Two, 90>;
  narrow::are_their_launches<narrow::source<two, float, product_format::fp32>, programs<two>,
                             program::backward, 1>();
  using full = Trained<Full, 128>;
  using of_full = narrow::source<full, bf16, product_format::bf16>;
  narrow::are_their_launches<of_full, programs<full, bf16>, program::forward, 1>();
  narrow::are_their_launches<of_full, programs<full, bf16>, program::backward, 1>(true);
  using stages = Trained<Deep, 70, Stages<2>>;
  narrow::are_their_launches<narrow::source<stages, bf16, product_format::bf16>,
                             programs<stages, bf16, 1>, program::backward, 1>();
}

TEST_CASE("chains that take the loss give the bits of their launches", "[cuda]") {
  using two = Trained<Two, 90>;
  narrow::are_their_launches<narrow::source<two, float, product_format::fp32>,
                             programs<two, float, 0, true>, program::backward, 1>();
  using full = Trained<Full, 128>;
  using of_full = narrow::source<full, bf16, product_format::bf16>;
  STATIC_REQUIRE(backward_chain<programs<full, bf16, 0, true>>().recomputed == 3);
  narrow::are_their_launches<of_full, programs<full, bf16, 0, true>, program::backward, 1>(true);
  using classes = Trained<Classes, 300>;
  narrow::are_their_launches<narrow::source<classes, bf16, product_format::bf16>,
                             programs<classes, bf16, 0, true>, program::backward, 1>();
}

TEST_CASE("which chains take the loss", "[cuda]") {
  // too many launches for one chain: it recomputes hidden values alone
  using deep = programs<Trained<Deep, 70>, float, 0, true>;
  STATIC_REQUIRE(backward_chain<deep>().recomputed == 5);
  STATIC_REQUIRE_FALSE(deep::has_loss_in_backward);
  STATIC_REQUIRE(programs<Trained<Two, 9>, float, 0, true>::has_loss_in_backward);
  // never in an earlier stage
  using stages = Trained<Deep, 70, Stages<2>>;
  STATIC_REQUIRE_FALSE(programs<stages, float, 0, true>::has_loss_in_backward);
  STATIC_REQUIRE(programs<stages, float, 1, true>::has_loss_in_backward);
  STATIC_REQUIRE_FALSE(programs<stages, float, 1, false>::has_loss_in_backward);
}

TEST_CASE("evaluation stores no hidden values", "[cuda]") {
  // B and W apart: training stores all of them
  using trainer = Trained<Deep, 33, Stages<2>, ZeroBubbleH1>;
  narrow::stores_for_training<narrow::source<trainer, float, product_format::fp32>,
                              programs<trainer>, 0>();
}
