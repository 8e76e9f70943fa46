// SPDX-License-Identifier: BSL-1.0
//
// A plan that the program makes: that of the Pipeline with the same options, number by number.
#include "catch.hpp"

#include <string>

#include "laws/random_model.hpp"

#include <pipe/plan/compiled/planned.hpp>

using namespace pp;
using namespace pp::detail;

namespace {

struct Mlp : Model<Input<5>, Linear<8>, GELUTanh, Linear<8>, ReLU, Linear<3>, CrossEntropy> {};
using Block =
    Seq<Residual<LayerNorm, Attention<2>>, Residual<LayerNorm, Linear<16>, GELUTanh, Linear<8>>>;
struct Gpt : Model<Tokens<11, 6>, Named<"tokens", Embedding<8>>, Positions, Repeat<2, Block>,
                   LayerNorm, Tied<"tokens">, CrossEntropy> {};

struct Untied : Model<Tokens<11, 6>, Embedding<8>, Positions, Repeat<2, Block>, LayerNorm,
                      Linear<11>, CrossEntropy> {};

bool same(stage_plan const& a, stage_plan const& b) {
  return a.rank == b.rank && a.first_layer == b.first_layer && a.end_layer == b.end_layer &&
         a.in == b.in && a.out == b.out && a.parameters == b.parameters && a.trained == b.trained &&
         a.forward_flops == b.forward_flops && a.backward_flops == b.backward_flops &&
         a.recompute_flops == b.recompute_flops && a.share == b.share &&
         a.in_flight == b.in_flight && a.forward_kernels == b.forward_kernels &&
         a.backward_kernels == b.backward_kernels && a.parameter_bytes == b.parameter_bytes &&
         a.gradient_bytes == b.gradient_bytes && a.transposed_bytes == b.transposed_bytes &&
         a.optimizer_bytes == b.optimizer_bytes && a.saved_bytes == b.saved_bytes &&
         a.boundary_bytes == b.boundary_bytes && a.bytes == b.bytes;
}

template <class Plan>
void are_the_same(Plan const& made, Plan const& compiled) {
  REQUIRE(made.stage_count == compiled.stage_count);
  for (int s = 0; s < made.stage_count; ++s) CHECK(same(made.stages[s], compiled.stages[s]));
  for (int r = 0; r < made.rank_count; ++r) {
    CHECK(made.rank_bytes[r] == compiled.rank_bytes[r]);
    CHECK(made.staging_bytes[r] == compiled.staging_bytes[r]);
    CHECK(made.bookkeeping_bytes[r] == compiled.bookkeeping_bytes[r]);
    CHECK(made.norm_bytes[r] == compiled.norm_bytes[r]);
    CHECK(made.summed_bytes[r] == compiled.summed_bytes[r]);
  }
  REQUIRE(made.links.count == compiled.links.count);
  for (int i = 0; i < made.links.count; ++i) {
    link_plan const &a = made.links[i], &b = compiled.links[i];
    CHECK((a.from == b.from && a.to == b.to && a.values == b.values && a.gradients == b.gradients &&
           a.shared == b.shared && a.bandwidth == b.bandwidth));
  }
  CHECK(made.parameters == compiled.parameters);
  CHECK(made.kernels == compiled.kernels);
  CHECK(made.step_flops == compiled.step_flops);
  CHECK(made.imbalance == compiled.imbalance);
  CHECK(made.bubble == compiled.bubble);
  CHECK(made.period == compiled.period);
  CHECK(made.bubble_steady == compiled.bubble_steady);
  CHECK(made.bytes == compiled.bytes);
}
template <class M, class... Options>
void plans_are_the_same() {
  are_the_same(Planned<M, Options...>::plan(),
               compiled_pipeline<M, option_set<Options...>>::plan());
}

/// The largest Transformer of GPipe's table 1.
using Layer = Seq<Residual<LayerNorm, Attention<32>>,
                  Residual<LayerNorm, Linear<8192>, GELUTanh, Linear<2048>>>;
struct Large : Model<Tokens<32000, 1024>, Embedding<2048>, Positions, Repeat<1663, Layer>,
                     LayerNorm, Linear<32000>, CrossEntropy> {};

struct Constant : Model<Input<5>, Frozen<Linear<3>>, CrossEntropy> {};
struct Normed : Model<Input<4>, Linear<6>, BatchNorm, Linear<2>, CrossEntropy> {};
struct Grouped : Model<Input<4>, Linear<6>, With<BatchNorm, SyncOver<2>>, Linear<2>, CrossEntropy> {
};
struct Wide : Model<Input<4>, Linear<1048576>, Linear<2>, CrossEntropy> {};
struct short_profile {
  static constexpr int layers = 2;
  static constexpr long forward_nanoseconds[] = {1, 1}, backward_nanoseconds[] = {1, 1};
};
struct BackToFront {
  static constexpr void cut(auto const&, int layers, int stages, auto& cuts) {
    for (int s = 0; s <= stages; ++s) cuts[s] = layers - s;
  }
};

}  // namespace

TEST_CASE("a plan made by the program is that of the compiler", "[train]") {
  plans_are_the_same<Mlp, PortableHost>();
  plans_are_the_same<Mlp, PortableHost, Stages<3>, MicroBatches<5>, MicroBatchSize<2>, Adafactor,
                     FP64>();
  plans_are_the_same<Gpt, PortableHost, Stages<4>, MicroBatches<8>, MicroBatchSize<3>, AdamW,
                     HostThreads<2>, Averaging<9, 10>>();
  plans_are_the_same<Gpt, PortableHost, Stages<2>, MicroBatches<2>, MicroBatchSize<3>, BF16>();
  plans_are_the_same<Mlp, PortableHost, MicroBatchSize<2>, SplitFP32, HostThreads<2>>();
  plans_are_the_same<Gpt, PortableHost, Stages<4>, MicroBatches<4>, Interleaved<2>, AdamW,
                     RecomputeAllButLast, ByCount>();
  plans_are_the_same<Mlp, PortableHost, Stages<3>, MicroBatches<4>, Steady<ZeroBubbleH2>>();
  plans_are_the_same<Gpt, PortableHost, Stages<4>, MicroBatches<4>, RecomputeAhead<ZeroBubbleH1>,
                     RecomputeAll>();
  plans_are_the_same<Mlp, PortableHost, Stages<3>, MicroBatches<4>, PACI<>>();
  plans_are_the_same<Mlp, PortableHost, Stages<3>, MicroBatches<4>, PACI<0, true>>();
  plans_are_the_same<Untied, PortableHost, Stages<3>, MicroBatches<4>, RecomputeAhead<PipeDream<>>,
                     RecomputeAll, GradientAccumulation<2>>();
  plans_are_the_same<laws::RandomModel<5, 9>, PortableHost, Stages<3>, MicroBatches<4>>();
}

TEST_CASE("a model of 1663 layers is planned on 128 stages", "[train]") {
  using plan_of_large = Planned<Large, Stages<128>, MicroBatches<512>, GPipe, RecomputeAll, AdamW>;
  auto const& plan = plan_of_large::plan();
  CHECK(plan.parameters == 83'879'011'584);  // the paper rounds it to 83.9 billion
  long layers = 0;
  for (stage_plan const& s : plan.stages) {
    CHECK(s.end_layer > s.first_layer);
    layers += s.end_layer - s.first_layer;
  }
  CHECK(layers == 2 + 2 * 1663 + 2);
  CHECK(plan.imbalance < 1.1);
  CHECK(plan.peak_in_flight == 512);
  CHECK(explain<plan_of_large>().find("83,879,011,584 parameters") != std::string::npos);
}

// Each of these is one line from the compiler where it is a Pipeline: see tests/fail.
TEST_CASE("what a Pipeline would not compile, a plan refuses", "[train]") {
  CHECK_THROWS_WITH((Planned<Mlp, PortableHost, Stages<6>>::plan()),
                    "a model of 5 layers: expected at most as many stages, got 6");
  CHECK_THROWS_WITH((Planned<Constant, PortableHost>::plan()),
                    "a model without trained parameters: expected at least 1 to train");
  CHECK_THROWS_WITH((Planned<Normed, PortableHost>::plan()),
                    "micro-batches of 1 samples: a batch norm would have one number per channel");
  CHECK_THROWS_WITH((Planned<Grouped, PortableHost, MicroBatchSize<3>>::plan()),
                    "micro-batches of 3 samples: expected a multiple of the groups of SyncOver, 2 "
                    "samples");
  CHECK_THROWS_WITH((Planned<Wide, PortableHost, MicroBatchSize<70'000>>::plan()),
                    "micro-batches of 70000 samples: expected at most 65536 for this model");
  CHECK_THROWS_WITH((Planned<Mlp, PortableHost, Stages<2>, Cut<5>>::plan()),
                    "a partition of 5 layers: expected ascending cuts, one less than 2 stages");
  CHECK_THROWS_WITH((Planned<Mlp, PortableHost, Stages<2>, ByProfile<short_profile>>::plan()),
                    "a profile of 2 layers: expected one of this model, which has 5");
  CHECK_THROWS_WITH((Planned<Mlp, PortableHost, Stages<3>, BackToFront>::plan()),
                    "a partition of 5 layers into 3 stages: expected ascending cuts from 0 to the "
                    "number of layers");
  CHECK_THROWS_WITH(
      (Planned<Gpt, PortableHost, Stages<2>, MicroBatches<4>, PipeDream<>>::plan()),
      "schedule pipedream: stages update independently, so none may share a parameter "
      "(Tied)");
}

TEST_CASE("a plan keeps the memory limit", "[train]") {
  using free = Planned<Mlp, PortableHost, Stages<3>, MicroBatches<6>, AdamW>;
  static constexpr auto needed = [] {
    auto const& plan = Pipeline<Mlp, PortableHost, Stages<3>, MicroBatches<6>, AdamW>::plan;
    long most = 0;
    for (int r = 0; r < 3; ++r)
      if (plan.rank_bytes[r] > most) most = plan.rank_bytes[r];
    return most;
  }();
  CHECK(free::plan().rank_bytes[0] <= needed);
  CHECK(Planned<Mlp, PortableHost, Stages<3>, MicroBatches<6>, AdamW, MemoryLimit<needed>>::plan()
            .bytes == free::plan().bytes);
  using less =
      Planned<Mlp, PortableHost, Stages<3>, MicroBatches<6>, AdamW, MemoryLimit<needed - 1>>;
  for (int again = 0; again < 2; ++again)
    CHECK_THROWS_WITH(less::plan(), Catch::Contains(" needs " + std::to_string(needed) +
                                                    " bytes of memory, 1 more than the limit of " +
                                                    std::to_string(needed - 1)));
  CHECK_THROWS_AS(explain<less>(), error);
}
