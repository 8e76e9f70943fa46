// SPDX-License-Identifier: BSL-1.0
//
// Times of layers as text, and the cuts that are judged by them: what a build with the profile
// plans.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/explain_profile.hpp>

namespace {

using namespace pp;
using namespace pp::detail;

struct Net : Model<Input<6>, Linear<8>, ReLU, Linear<8>, Tanh, Linear<8>, GELUTanh, Linear<8>,
                   Linear<5>, MSE> {};

/// The first layers take most of the time, and W more than B.
struct front_profile {
  static constexpr int layers = 8;
  static constexpr long forward_nanoseconds[] = {4000, 1000, 3000, 500, 700, 300, 200, 100};
  static constexpr long backward_input_nanoseconds[] = {0, 1200, 2900, 800, 600, 400, 300, 100};
  static constexpr long backward_weight_nanoseconds[] = {5000, 0, 4000, 0, 900, 0, 250, 90};
};
layer_times measured() {
  layer_times times;
  for (int l = 0; l < front_profile::layers; ++l) {
    times.each.push_back(time_in_profile<front_profile>(l));
    times.layers.push_back("L" + std::to_string(l));
  }
  times.what = "Net: given";
  return times;
}

/// The times of the profile, and the cut of another policy.
template <class Policy>
struct TimesWithCutOf : Policy {
  using profile = front_profile;
  static constexpr auto time_of(int layer, schedules::chunk_cost const& estimate) {
    return ByProfile<front_profile>::time_of(layer, estimate);
  }
};

/// A judged cut has what the plan of a build with it has.
template <class Build>
void is_as_built(judged_cut const& cut) {
  auto const& plan = Build::plan();
  REQUIRE(cut.first_layer.size() == std::size_t(plan.stage_count));
  double slowest = 0, all = 0;
  for (int s = 0; s < plan.stage_count; ++s) {
    INFO("stage " << s);
    CHECK(cut.first_layer[std::size_t(s)] == plan.stages[s].first_layer);
    auto const &c = cut.problem.cost(s), &built = Build::compiled::times().cost(s);
    CHECK(c.forward == built.forward);
    CHECK(c.backward_input == built.backward_input);
    CHECK(c.backward_weight == built.backward_weight);
    CHECK(c.recompute == built.recompute);
    CHECK(c.memory.forward == built.memory.forward);
    CHECK(c.memory.recompute == built.memory.recompute);
    all += double(c.forward + c.backward_input + c.backward_weight);
    slowest = std::max(slowest, double(c.forward + c.backward_input + c.backward_weight));
  }
  CHECK(cut.bubble == plan.bubble);
  CHECK(cut.makespan == Build::compiled::timeline().makespan);
  CHECK(double(cut.bottleneck) == slowest);
  CHECK(plan.imbalance == Approx(slowest * plan.stage_count / all));
}

template <class... Options>
void judges_as_builds_are() {
  using Build = Planned<Net, Options...>;
  cut_judge<Net, typename Build::compiled::chosen> const judge(measured().each);
  is_as_built<Planned<Net, ByProfile<front_profile>, Options...>>(judge.after());
  is_as_built<Planned<Net, TimesWithCutOf<ByCost>, Options...>>(judge.before());
  CHECK(judge.after().bottleneck <= judge.before().bottleneck);
}

bool has(std::string const& text, std::string const& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("a cut is judged as a build with it is planned", "[report]") {
  judges_as_builds_are<Stages<4>, MicroBatches<6>>();
  judges_as_builds_are<Stages<4>, MicroBatches<6>, ZeroBubbleH1>();
  judges_as_builds_are<Stages<4>, MicroBatches<4>, Interleaved<2>>();
  judges_as_builds_are<Stages<3>, MicroBatches<4>, Searched<>>();
  judges_as_builds_are<Stages<3>, MicroBatches<5>, GPipe, RecomputeAll>();
}

TEST_CASE("the policy of the pipeline is what there was before", "[report]") {
  using ByNumbers = Planned<Net, Stages<2>, MicroBatches<3>, Cut<6>>;
  cut_judge<Net, ByNumbers::compiled::chosen> const judge(measured().each);
  CHECK(judge.before().first_layer == std::vector<int>{0, 6});
  is_as_built<Planned<Net, TimesWithCutOf<Cut<6>>, Stages<2>, MicroBatches<3>>>(judge.before());
  CHECK(judge.after().first_layer == std::vector<int>{0, 2});
}

TEST_CASE("times are beside estimates, and the cut before beside the cut after", "[report]") {
  using Trainer = Pipeline<Net, Stages<2>, MicroBatches<3>, ZeroBubbleH1, Cut<4>>;
  std::string const text = explain_profile<Trainer>(measured());
  INFO(text);
  CHECK(has(text, "times of a micro-batch, of Net: given\n"));
  CHECK(has(text, "layer       F       B       W  measured  estimated\n"));
  CHECK(has(text, "\n0 L0   4.0 us  0.0 us  5.0 us    34.2 %"));
  CHECK(has(text,
            "\n2 stages, zb-h1, by these times:\n"
            "cut             stages begin at  slowest stage  bubble     step\n"
            "Cut<4>          0, 4"));
  CHECK(has(text, "\nby these times  0, 2"));
  layer_times more = measured();
  more.each.push_back({1, 1, 1});
  CHECK_THROWS_WITH(explain_profile<Trainer>(more),
                    "times of 9 layers: expected those of this model, which has 8");
}
