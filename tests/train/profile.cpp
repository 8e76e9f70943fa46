// SPDX-License-Identifier: BSL-1.0
//
// Measured times of layers: that they are measured, that they move the cuts and the plan, and that
// a header carries them.
//
// Stands alone: it prints the names of its models.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/plan/profile.hpp>

#include "folder.hpp"
#include "laws/data.hpp"
#include "laws/schedules.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

struct Net : Model<Input<6>, Linear<8>, ReLU, Linear<8>, Tanh, Linear<8>, GELUTanh, Linear<8>,
                   Linear<5>, MSE> {};
constexpr int layers_of_net = Net::graph.size.units;
static_assert(layers_of_net == 8);

template <class... More>
using Small = Pipeline<Net, PortableHost, MicroBatches<4>, MicroBatchSize<2>, More...>;

/// Every layer takes as long as any other.
struct even_profile {
  static constexpr int layers = 8;
  static constexpr long forward_nanoseconds[] = {10, 10, 10, 10, 10, 10, 10, 10};
  static constexpr long backward_nanoseconds[] = {20, 20, 20, 20, 20, 20, 20, 20};
};
/// Two layers take nearly all the time, as no estimate would say: forward of one, backward of the
/// other.
struct uneven_profile {
  static constexpr int layers = 8;
  static constexpr long forward_nanoseconds[] = {1, 1, 1, 1, 1, 1, 900, 0};
  static constexpr long backward_nanoseconds[] = {2, 2, 2, 2, 2, 2, 3, 500};
};

template <class Trainer, int... Cuts>
constexpr bool cuts_are() {
  constexpr int expected[] = {Cuts...};
  for (int s = 1; s < Trainer::plan.stage_count; ++s)
    if (Trainer::plan.stages[s].first_layer != expected[s - 1]) return false;
  return sizeof...(Cuts) == Trainer::plan.stage_count - 1;
}

// The cuts are where the times are, and the plan is of the times.
using Even = Small<Stages<4>, ByProfile<even_profile>>;
static_assert(cuts_are<Even, 2, 4, 6>());
static_assert(Even::plan.imbalance == 1 && Even::plan.stages[2].share == 0.25);
static_assert(Even::compiled::times().cost(0).forward == 20);
static_assert(Even::compiled::times().cost(0).backward_input +
                  Even::compiled::times().cost(0).backward_weight ==
              40);
static_assert(Even::compiled::timeline().makespan == (4 + 3) * (20 + 40));

using Uneven = Small<Stages<3>, ByProfile<uneven_profile>>;
static_assert(cuts_are<Uneven, 6, 7>());
static_assert(!cuts_are<Small<Stages<3>>, 6, 7>());
static_assert(Uneven::compiled::times().cost(1).forward == 900 &&
              Uneven::compiled::times().cost(2).forward == 0);
static_assert(Uneven::plan.imbalance == 903.0 * 3 / (18 + 903 + 500));

// A schedule that splits backward gets both parts of it.
using Split = Small<Stages<4>, ByProfile<even_profile>, laws::LateWeights>;
static_assert(Split::compiled::times().cost(1).backward_input > 0);
static_assert(Split::compiled::times().cost(1).backward_input +
                  Split::compiled::times().cost(1).backward_weight ==
              40);

// What runs again takes its time again, as much as forward at most.
using Again = Small<Stages<4>, ByProfile<even_profile>, GPipe, RecomputeAll>;
static_assert(Again::compiled::times().cost(0).backward_input +
                  Again::compiled::times().cost(0).backward_weight >
              40);
static_assert(Again::compiled::times().cost(0).backward_input +
                  Again::compiled::times().cost(0).backward_weight <=
              60);

/// Whether a list of ops has one that begins a launch at a layer: only such a layer has a time of
/// its own.
template <class Trainer>
std::vector<bool> layers_with_launches(bool forward) {
  using passes = typename Trainer::compiled::passes;
  std::vector<bool> found = std::vector<bool>(std::size_t(passes::units));
  for (detail::op_list l : detail::every_op_list)
    if (l != detail::op_list::recompute && (l == detail::op_list::forward) == forward)
      for (detail::segment const& s : passes::kernels.fused[l].segments)
        found[std::size_t(passes::ops[l][s.begin].unit)] = true;
  return found;
}

/// For measurements while other tests run.
constexpr double any_spread = 1e9;

template <class Trainer>
void measures() {
  Trainer trainer({.seed = 1});
  laws::sample_batch<Trainer> const data(3);
  auto const before = laws::snapshot(trainer);
  layer_times const times = measure_layers(trainer, data.view(), 3, any_spread);
  auto const after = laws::snapshot(trainer);
  CHECK(laws::same_numbers(before.values, after.values));
  CHECK(trainer.steps() == 0);

  REQUIRE(times.forward.size() == std::size_t(layers_of_net));
  REQUIRE(times.backward.size() == std::size_t(layers_of_net));
  auto const forward = layers_with_launches<Trainer>(true),
             backward = layers_with_launches<Trainer>(false);
  CHECK(std::count(forward.begin(), forward.end(), true) >= 4);
  CHECK(std::count(backward.begin(), backward.end(), true) >= 4);
  for (std::size_t l = 0; l < times.forward.size(); ++l) {
    INFO("layer " << l);
    CHECK((times.forward[l] > 0) == forward[l]);
    CHECK((times.backward[l] > 0) == backward[l]);
  }
  CHECK(times.layers[0] == "Linear<8>");
  CHECK(times.layers[3] == "Tanh");
}

}  // namespace

TEST_CASE("every layer with launches has a time, and nothing is trained", "[train]") {
  measures<Small<>>();
  measures<Small<Stages<3>>>();
  measures<Small<Stages<3>, laws::LateWeights>>();
  measures<Small<Stages<3>, GPipe, RecomputeAllButLast>>();
}

TEST_CASE("what was measured is said", "[train]") {
  Small<Stages<3>> trainer;
  laws::sample_batch<Small<Stages<3>>> const data(3);
  layer_times const times = measure_layers(trainer, data.view(), 1, any_spread);
  CHECK(times.what == "Net: launches' medians of 1 training step (their middle half spans " +
                          std::to_string(long(100 * times.spread + 0.5)) +
                          " %), micro-batches of 2 samples, fp32, 3 stages, kernels: portable");
  CHECK(sentence<error>([&] { measure_layers(trainer, data.view(), 0); }) ==
        "measure_layers: expected at least 1 repeat, got 0");
}

TEST_CASE("the median is in the middle", "[train]") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(median({4, 1, 9, 2}) == 4);
  CHECK(sentence<error>([] { median({}); }) == "median: expected at least 1 number, got none");
}

// Launches take 100 ns, and one in three is interrupted and takes 1000: mostly not the same ones,
// so the median of a layer's sums would be that of an interrupted one.
TEST_CASE("an interrupted launch spoils no layer", "[train]") {
  constexpr int micro_batches = 2;
  std::vector<timed_launch> launches;
  for (int which = 0; which < 4; ++which) {
    timed_launch launch{which / 3, which != 1, {true, true}, {}};
    for (int i = 0; i < 20; ++i)
      launch.nanoseconds.push_back((i + which) % 3 == 0 ? 1000 : 100 + i % 2);
    launches.push_back(launch);
  }
  // Forward of layer 0: launches 0 and 2; its backward: 1; forward of layer 1: 3.
  layer_times const times = times_of(launches, 2, micro_batches);
  CHECK(times.forward == std::vector<long>{202, 101});
  CHECK(times.backward == std::vector<long>{101, 0});
}

// The second of two micro-batches runs other launches, which keep what the first one drops.
TEST_CASE("launches of some micro-batches count in those", "[train]") {
  std::vector<timed_launch> const launches{{0, true, {true, false, false}, {500}},
                                           {0, true, {false, true, true}, {30}},
                                           {0, true, {false, true, true}, {4}}};
  CHECK(times_of(launches, 1, 3).forward == std::vector<long>{34});
  CHECK(times_of(launches, 1, 3).backward == std::vector<long>{0});
}

TEST_CASE("times that are not sure are refused", "[train]") {
  auto const spread = [](std::vector<long> const& nanoseconds) {
    return times_of({{0, true, {true}, nanoseconds}}, 1, 1).spread;
  };
  CHECK(spread({100, 100, 100, 100}) == 0);
  CHECK(spread({100, 100, 100, 9999}) == 99.99 - 1);  // 3/4 of four is the last of them
  CHECK(spread({100, 100, 100, 100, 100, 100, 100, 9999}) == 0);
  CHECK(spread({50, 75, 100, 125, 150}) == 0.5);
  layer_times times;
  times.spread = 0.506;
  require_spread(times, 0.506);
  CHECK(sentence<error>([&] { require_spread(times, 0.5); }) ==
        "measure_layers: the middle half of a launch's times spans 51 % of their median, more than "
        "50 %: another program uses this machine; measure again without it, or accept a greater "
        "spread");
  // Of a long and a short launch the long one counts.
  CHECK(times_of({{0, true, {true}, {1000, 1000, 1000}}, {0, true, {true}, {1, 10, 19}}}, 1, 1)
            .spread < 0.02);
  Small<> trainer;
  laws::sample_batch<Small<>> const data(3);
  CHECK(sentence<error>([&] { measure_layers(trainer, data.view(), 3, -1); }).substr(0, 47) ==
        "measure_layers: the middle half of a launch's t");
}

TEST_CASE("what watches a run sees every launch, and its exception comes out of it", "[train]") {
  Small<Stages<3>> trainer;
  laws::sample_batch<Small<Stages<3>>> const data(3);
  std::vector<int> seen(3);
  step_result const watched =
      trainer.watch(data.view(), [&](launch_seen const& s) { ++seen[std::size_t(s.chunk)]; });
  for (int s = 0; s < 3; ++s)
    CHECK(seen[std::size_t(s)] ==
          4 * (trainer.plan.stages[s].forward_kernels + trainer.plan.stages[s].backward_kernels));
  step_result const plain = trainer.gradients(data.view());
  CHECK(watched.loss == plain.loss);
  CHECK(watched.gradient_norm == plain.gradient_norm);
  CHECK(sentence<error>([&] {
          trainer.watch(data.view(), [](launch_seen const&) { throw error("seen enough"); });
        }) == "seen enough");
  CHECK(trainer.gradients(data.view()).loss == plain.loss);
}

TEST_CASE("a profile becomes a header", "[train]") {
  temporary_folder const folder;
  layer_times const times{{7, 123456789}, {0, 20}, {"Linear<8>", "ReLU"}, "Net: as measured"};
  write_profile(folder.file("net_profile.hpp"), "net_profile", times);
  CHECK(content(folder.file("net_profile.hpp")) ==
        "// Nanoseconds per micro-batch that each layer takes, for pp::ByProfile<net_profile>; "
        "written by "
        "pp::write_profile.\n"
        "// Net: as measured\n"
        "#pragma once\n"
        "\n"
        "struct net_profile {\n"
        "  static constexpr int layers = 2;\n"
        "  static constexpr long forward_nanoseconds[] = {\n"
        "      7,            // 0 Linear<8>\n"
        "      123456789,    // 1 ReLU\n"
        "  };\n"
        "  static constexpr long backward_nanoseconds[] = {\n"
        "      0,            // 0 Linear<8>\n"
        "      20,           // 1 ReLU\n"
        "  };\n"
        "};\n");
  CHECK(folder.names() == std::set<std::string>{"net_profile.hpp"});
}

TEST_CASE("a profile that cannot be a header is refused", "[train]") {
  temporary_folder const folder;
  for (char const* const name : {"", "2nd", "a b", "a::b", "a;"})
    CHECK(sentence<error>([&] { write_profile(folder.file("a"), name, layer_times{}); }) ==
          "write_profile: '" + std::string(name) +
              "': expected a C++ identifier, the name of a struct");
  CHECK(sentence<error>([&] {
          write_profile(folder.file("a"), "a", layer_times{{1, 2}, {3}, {"ReLU", "Tanh"}, ""});
        }) ==
        "write_profile: 2 forward times, 1 backward times and 2 names of layers: expected as many "
        "of each");
  CHECK(folder.names().empty());
  CHECK(sentence<file_error>([&] { write_profile(folder.file("none/a"), "a", layer_times{}); }) ==
        "cannot write '" + folder.file("none/a") + "': No such file or directory");
}
