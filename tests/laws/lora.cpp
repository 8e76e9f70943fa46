// SPDX-License-Identifier: BSL-1.0
//
// The laws for LoRA around attention and whole blocks that stages cut: gradients are central
// differences, bits do not depend on cuts, schedules and recomputation, and what is frozen stays.
#include "catch.hpp"

#include "laws/layer_laws.hpp"

using namespace pp;

namespace {

using Reads = Residual<LayerNorm, Attention<2, KeyValueHeads<1>, HeadSize<6>, RoPE<>>>;
template <class... More>
using Thinks = Residual<LayerNorm, Linear<9>, GELUTanh, More..., Linear<8>>;

/// Trained layers before, between and after what is adapted.
template <class... More>
struct Adapted
    : Model<Tokens<11, 4>, Embedding<8>, LoRA<Repeat<2, Reads, Thinks<More...>>, 2, Alpha<3>>,
            Linear<8>, Tanh, LoRA<Seq<Attention<2>, Thinks<More...>>, 3>, LayerNorm,
            LoRA<Linear<11>, 1>, CrossEntropy> {
  static constexpr bool pads = true;
};
using Dropped = Adapted<Dropout<1, 10>>;
/// Low-rank terms alone are trained: the first layers have no gradients.
struct Terms : Model<Tokens<11, 4>, Frozen<Embedding<8>>, Frozen<Thinks<>>,
                     LoRA<Seq<Reads, Thinks<>, LayerNorm, Linear<11>>, 2>, CrossEntropy> {};

template <class M, class... More>
using Of = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

/// Mini-batches of 8, 5 and 2 samples.
template <class M, class... More>
void same_as_one_stage() {
  laws::same_as_one_stage<Of<M>, Of<M, More...>>(5, 3, 3);
}

/// Trains with weight decay, and holds every parameter to what LoRA says of it.
template <class Trainer>
void trains_low_rank_terms_alone(long frozen, long trained) {
  typename Trainer::settings s{.seed = 2};
  s.optimizer.weight_decay = 0.5;
  Trainer trainer(s), before(s);
  for (int step = 0; step < 3; ++step)
    trainer.step(laws::sample_batch<Trainer>(std::uint64_t(step)).view());
  auto const now = trainer.parameters(), then = before.parameters();
  long stays = 0, moves = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    INFO(now[i].name);
    bool const is_trained = Trainer::model::graph.parameters[now[i].index].trained;
    CHECK(now[i].gradients.empty() == !is_trained);
    CHECK(laws::same_numbers(now[i].values, then[i].values) == !is_trained);
    (is_trained ? moves : stays) += long(now[i].values.size());
  }
  CHECK(stays == frozen);
  CHECK(moves == trained);
}

}  // namespace

TEST_CASE("gradients of adapted blocks are central differences", "[laws]") {
  laws::gradients_are_differences<Adapted<>>(1);
  laws::gradients_are_differences<Terms>(2);
}
TEST_CASE("adapted blocks have the bits of one stage", "[laws]") {
  constexpr int units = Dropped::graph.size.units;
  static_assert(units == 11);  // with each layer inside a LoRA
  same_as_one_stage<Dropped, Stages<units>, laws::LateWeights,
                    Recompute<op_kind::attention, op_kind::norm, op_kind::matmul>>();
  same_as_one_stage<Dropped, Stages<8>, Interleaved<2>, RecomputeAll, HostThreads<2>>();
}
TEST_CASE("low-rank terms alone have the bits of one stage", "[laws]") {
  same_as_one_stage<Terms, Stages<4>, ZeroBubbleH1, RecomputeAllButLast>();
}
TEST_CASE("what is adapted stays as it is", "[laws]") {
  constexpr int before = 11 * 8, thinks = 2 * 8 + (8 * 9 + 9) + (9 * 8 + 8),
                reads = 2 * 8 + (8 * 24 + 24) + (12 * 8 + 8), after = 2 * 8 + (8 * 11 + 11);
  trains_low_rank_terms_alone<Of<Terms, Stages<4>, ZeroBubbleH1, RecomputeAllButLast>>(
      before + 2 * thinks + reads + after,
      2 * ((8 + 24) + (12 + 8) + (8 + 9) + (9 + 8) + (8 + 11)));
}
