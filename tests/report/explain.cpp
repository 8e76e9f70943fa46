// SPDX-License-Identifier: BSL-1.0
//
// The plan as text says what the plan says, and no line is wider than promised.
#include <algorithm>
#include <sstream>

#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/report/explain.hpp>
#include <pipe/report/kernels.hpp>

namespace {

using namespace pp;
using namespace pp::detail;
using Block =
    Seq<Residual<LayerNorm, Attention<2>>, Residual<LayerNorm, Linear<32>, GELUTanh, Linear<16>>>;
struct Small : Model<Tokens<64, 8>, Embedding<16>, Positions, Repeat<4, Block>, LayerNorm,
                     Linear<64>, CrossEntropy> {};
using Trainer = Pipeline<Small, Stages<2>, MicroBatches<4>, MicroBatchSize<3>, GPipe, AdamW>;

struct Tiny : Model<Input<4>, Linear<3>, MSE> {};
struct Squares : Model<Input<64>, Repeat<4, Linear<64>>, MSE> {};
using OneStage = Pipeline<Tiny, SGD>;
using ThreeThreads = Pipeline<Tiny, HostThreads<3>>;

bool has(std::string const& text, std::string const& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("the FLOPs of a step are counted twice, and bounded by the bubble", "[report]") {
  // 64 x 65 parameters a layer, and 6 of them times 8 samples in 4 micro-batches of 2.
  using Plain = Pipeline<Squares, Stages<2>, MicroBatches<4>, MicroBatchSize<2>, SGD>;
  std::string const line = "a step: " + readable_real(double(Plain::plan.step_flops) * 1e-6, 1) +
                           " MFLOP, " + readable_real(6e-6 * 4 * 64 * 65 * 8, 1) +
                           " by 6 N D (parameters, positions); utilisation of the ranks at most " +
                           console::readable_percent(1 - Plain::plan.bubble) + "\n";
  CHECK(has(explain<Plain>(), line));
  // Without the first and last layers' input gradient and loss the two agree to a tenth or so.
  CHECK(double(Plain::plan.step_flops) == Approx(6. * 4 * 64 * 65 * 8).epsilon(0.15));
  using Again =
      Pipeline<Squares, Stages<2>, MicroBatches<4>, MicroBatchSize<2>, SGD, GPipe, RecomputeAll>;
  long again = 0;
  for (int s = 0; s < 2; ++s) again += 4 * Again::plan.stages[s].recompute_flops;
  REQUIRE(again > 0);
  double const useful = double(Again::plan.step_flops) / double(Again::plan.step_flops + again);
  CHECK(has(explain<Again>(), "at most " +
                                  console::readable_percent((1 - Again::plan.bubble) * useful) +
                                  ", " + console::readable_percent(1 - useful) + " recomputed\n"));
  using Flowing =
      Pipeline<Squares, Stages<2>, MicroBatches<4>, MicroBatchSize<2>, SGD, Steady<ZeroBubbleH2>>;
  CHECK(has(explain<Flowing>(),
            "at most " + console::readable_percent(1 - Flowing::plan.bubble_steady) + "\n"));
}

TEST_CASE("the plan names the model, its options and its layers") {
  std::string const text = explain<Trainer>();
  INFO(text);
  CHECK(has(text, "Small: " + console::readable_count(Trainer::plan.parameters) +
                      " parameters, 25 distinct kernels, fp32, AdamW\n"));
  CHECK(has(text, "2 stages on 2 ranks, schedule gpipe, 4 x 3 samples per step\n"));
  CHECK(has(text,
            "stage 0  Embedding<16>, Positions, (Residual<LayerNorm, Attention<2>>, "
            "Residual<LayerNorm,"));
  CHECK(has(text, "CrossEntropy\n"));
  CHECK(has(text, "8 ids -> 8 x 16"));
  CHECK(has(text, "8 x 16 -> 8 x 64"));
  CHECK(has(text, console::readable_bytes(Trainer::plan.bytes) + " in all"));
  CHECK(has(text, "imbalance " + readable_real(Trainer::plan.imbalance, 3)));
  CHECK(has(text, "rank 1  "));
}

TEST_CASE("a model of one layer in one stage reads well, too") {
  std::string const text = explain<OneStage>();
  INFO(text);
  CHECK(has(text, "Tiny: 15 parameters, "));
  CHECK(has(text, " kernels, fp32, SGD\n"));
  CHECK(has(text, "1 stage on 1 rank, schedule 1f1b, 1 x 1 sample per step\n"));
  CHECK(has(text, "stage 0  Linear<3>, MSE\n"));
  CHECK(has(text, "4 -> 3"));
  CHECK(has(explain<ThreeThreads>(), "1 stage on 1 rank of 3 threads, schedule 1f1b, "));
}

TEST_CASE("the period is told where steps overlap") {
  auto const told = []<class Schedule>(std::type_identity<Schedule>) {
    return explain<
        Pipeline<Squares, Stages<2>, MicroBatches<4>, MicroBatchSize<2>, SGD, Schedule>>();
  };
  std::string const words = "without a barrier, a step takes ";
  CHECK_FALSE(has(told(std::type_identity<ZeroBubbleH2>{}), words));
  using Overlapping =
      Pipeline<Squares, Stages<2>, MicroBatches<4>, MicroBatchSize<2>, SGD, Steady<ZeroBubbleH2>>;
  constexpr auto const& plan = Overlapping::plan;
  CHECK(plan.period.value() < double(Overlapping::compiled::timeline().makespan));
  CHECK(plan.bubble_steady < plan.bubble);
  CHECK(has(told(std::type_identity<Steady<ZeroBubbleH2>>{}),
            words +
                console::readable_percent(plan.period.value() /
                                          double(Overlapping::compiled::timeline().makespan)) +
                " of the makespan in the long run, bubble " +
                console::readable_percent(plan.bubble_steady) + "\n"));
  CHECK(has(told(std::type_identity<PACI<>>{}), words));
}

TEST_CASE("memory of buffers has a column where there are any") {
  struct Rotated : Model<Input<6, 8>, Attention<2, RoPE<>>, Linear<2>, MSE> {};
  using trainer = Pipeline<Rotated, SGD>;
  CHECK(trainer::plan.stages[0].buffer_bytes == detail::align_up(6 * 4 * long(sizeof(float))));
  CHECK(trainer::plan.parameters == 9 * 24 + 9 * 8 + 9 * 2);
  CHECK(trainer::plan.buffers == 0);  // that follow statistics
  CHECK(has(explain_memory<trainer>(), "buffers"));
  CHECK(!has(explain_memory<OneStage>(), "buffers"));
}

TEST_CASE("links between ranks are listed with their bytes") {
  std::string const text = explain<Trainer>();
  INFO(text);
  link_plan const& forth = Trainer::plan.links[0];
  CHECK(has(text, "link          values  gradients  shared  per step  hidden by\n"));
  CHECK(has(text, "rank 0 -> 1  1.5 KiB          -       -   6.0 KiB      " +
                      readable_real(1000 * forth.bandwidth, 3) + "\n"));
  CHECK(has(text, "rank 1 -> 0        -    1.5 KiB       -   6.0 KiB"));
  CHECK(!has(text, "replicas"));
  CHECK(explain_links<OneStage>().empty());
}

TEST_CASE("the exchange of replicas is listed with the time that hides it") {
  using Replicas = Pipeline<Small, Stages<2>, GradientAccumulation<4>>;
  std::string const text = explain_links<Replicas>();
  INFO(text);
  auto const& when = Replicas::compiled::timeline();
  int const last = when.spans.size(1) - 1;
  auto const by = [](long time) {
    return readable_real(2000 * double(Replicas::plan.summed_bytes[1]) / double(time), 3);
  };
  // Rank 0 has the first forward and the last backward, so nothing hides its exchange.
  long const drain = when.makespan - when.spans.at(1, last).end, fill = when.spans.at(1, 0).start;
  CHECK(has(text, "2 (n - 1) / n times the gradients of its ranks per step\n"));
  CHECK(has(text, "0.0 %          -              0.0 %  "));
  CHECK(has(text, "  " + console::readable_bytes(Replicas::plan.summed_bytes[1]) + "  "));
  CHECK(has(text, console::readable_percent(double(drain) / double(when.makespan)) + "  "));
  CHECK(has(text, "  " + by(drain) + "  "));
  CHECK(has(text, "  " + by(drain + fill) + "\n"));
}

TEST_CASE("layers without work are listed where they stand") {
  struct Skips : Model<Input<2, 4>, Linear<4>, Stash<"a">, Pop<"a">,
                       Repeat<2, Linear<4>, Stash<"b">, Tanh, Pop<"b">>, Flatten, Linear<8>,
                       Stash<"c">, Linear<8>, Pop<"c">, MSE> {};
  std::string const text = explain<Pipeline<Skips, Stages<2>, Cut<8>, PortableHost>>();
  INFO(text);
  CHECK(
      has(text,
          R"(stage 0  Linear<4>, Stash<"a">, Pop<"a">, (Linear<4>, Stash<"b">, Tanh, Pop<"b">) x2)"
          "\n"));
  CHECK(has(text, R"(stage 1  Flatten, Linear<8>, Stash<"c">, Linear<8>, Pop<"c">, MSE)"
                  "\n"));
}

TEST_CASE("no line is wider than a hundred characters, and none ends in a space") {
  std::istringstream lines(explain<Trainer>() + explain_kernels<Trainer>());
  for (std::string line; std::getline(lines, line);) {
    INFO(line);
    CHECK(line.size() <= std::size_t(explain_width));
    CHECK((line.empty() || line.back() != ' '));
  }
}

TEST_CASE("kernels are listed with what was fused into them") {
  std::string const text = explain_kernels<Trainer>();
  INFO(text);
  CHECK(has(text, "matmul 8 x 32 k16 + bias + GELUTanh\n"));
  CHECK(has(text, "attention 8 x 16 h2\n"));
  CHECK(has(text, "lookup 8 x 16 v64 + row_bias\n"));
  CHECK(has(text, "backward, weight"));
  CHECK(std::count(text.begin(), text.end(), '\n') == Trainer::plan.kernels + 1);
}
