// SPDX-License-Identifier: BSL-1.0
//
// Measured times of layers: that they are measured, that they move the cuts and the plan, and that
// a header carries them.
//
// Stands alone: it prints the names of its models.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/plan/profile.hpp>

#include "folder.hpp"
#include "laws/data.hpp"
#include "laws/given_times.hpp"
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

/// Every layer takes as long as any other; W takes half as long as B.
struct even_profile {
  static constexpr int layers = 8;
  static constexpr long forward_nanoseconds[] = {12, 12, 12, 12, 12, 12, 12, 12};
  static constexpr long backward_input_nanoseconds[] = {20, 20, 20, 20, 20, 20, 20, 20};
  static constexpr long backward_weight_nanoseconds[] = {10, 10, 10, 10, 10, 10, 10, 10};
};
/// Three layers take nearly all the time, as no estimate would say: F of one, B of another, W of
/// the third.
struct uneven_profile {
  static constexpr int layers = 8;
  static constexpr long forward_nanoseconds[] = {1, 1, 1, 1, 1, 1, 900, 0};
  static constexpr long backward_input_nanoseconds[] = {1, 1, 1, 1, 1, 1, 2, 500};
  static constexpr long backward_weight_nanoseconds[] = {1, 1, 1, 1, 1, 700, 1, 0};
};
/// As write_profile wrote it in 0.1: one time for B and W.
struct whole_profile {
  static constexpr int layers = 8;
  static constexpr long forward_nanoseconds[] = {10, 10, 10, 10, 10, 10, 10, 10};
  static constexpr long backward_nanoseconds[] = {20, 20, 20, 20, 20, 20, 20, 20};
};

template <class Trainer, int... Cuts>
constexpr bool cuts_are() {
  constexpr int expected[] = {Cuts...};
  for (int s = 1; s < Trainer::plan.stage_count; ++s)
    if (Trainer::plan.stages[s].first_layer != expected[s - 1]) return false;
  return sizeof...(Cuts) == Trainer::plan.stage_count - 1;
}

/// The times of stage s in a pipeline's problem are these.
template <class Trainer>
constexpr bool times_are(int s, long forward, long backward_input, long backward_weight) {
  auto const& c = Trainer::compiled::times().cost(s);
  return c.forward == forward && c.backward_input == backward_input &&
         c.backward_weight == backward_weight;
}

// The cuts are where the times are, and the plan is of the times.
using Even = Small<Stages<4>, ByProfile<even_profile>>;
static_assert(cuts_are<Even, 2, 4, 6>());
static_assert(Even::plan.imbalance == 1 && Even::plan.stages[2].share == 0.25);
static_assert(times_are<Even>(0, 24, 40, 20) && times_are<Even>(3, 24, 40, 20));
static_assert(Even::compiled::timeline().makespan == (4 + 3) * (24 + 40 + 20));

using Uneven = Small<Stages<4>, ByProfile<uneven_profile>>;
static_assert(cuts_are<Uneven, 3, 6, 7>());  // the cut at 3 costs no time, and frees memory
static_assert(!cuts_are<Small<Stages<4>>, 3, 6, 7>());
static_assert(times_are<Uneven>(0, 3, 3, 3) && times_are<Uneven>(1, 3, 3, 702) &&
              times_are<Uneven>(2, 900, 2, 1) && times_are<Uneven>(3, 0, 500, 0));
static_assert(Uneven::plan.imbalance == 903.0 * 4 / (9 + 708 + 903 + 500));

// A schedule that splits backward is simulated with B and W as measured: on the last rank, which
// never waits, F, B and W of every micro-batch follow each other.
using Split = Small<Stages<4>, ByProfile<even_profile>, laws::LateWeights>;
static_assert(times_are<Split>(1, 24, 40, 20));
static_assert(Split::compiled::timeline().total_busy() == 4 * 4 * (24 + 40 + 20));
using ZeroBubble = Small<Stages<4>, ByProfile<even_profile>, ZeroBubbleH1>;
static_assert(times_are<ZeroBubble>(2, 24, 40, 20));
static_assert(ZeroBubble::plan.bubble < Even::plan.bubble);

// One time for both is split by the estimates, and no time is lost.
using Whole = Small<Stages<4>, ByProfile<whole_profile>, laws::LateWeights>;
static_assert(cuts_are<Whole, 2, 4, 6>());
static_assert(Whole::compiled::times().cost(1).forward == 20);
static_assert(Whole::compiled::times().cost(1).backward_input > 0 &&
              Whole::compiled::times().cost(1).backward_weight > 0);
static_assert(Whole::compiled::times().cost(1).backward_input +
                  Whole::compiled::times().cost(1).backward_weight ==
              40);

// What runs again takes its time again, as much as forward at most, and W takes none of it.
using Again = Small<Stages<4>, ByProfile<even_profile>, GPipe, RecomputeAll>;
static_assert(Again::compiled::times().cost(0).backward_input > 40);
static_assert(Again::compiled::times().cost(0).backward_input <= 40 + 24);
static_assert(Again::compiled::times().cost(0).backward_weight == 20);

// Not a profile: the times of W are missing, or are of another number of layers.
struct without_w {
  static constexpr int layers = 2;
  static constexpr long forward_nanoseconds[] = {1, 2};
  static constexpr long backward_input_nanoseconds[] = {1, 2};
};
struct short_w : without_w {
  static constexpr long backward_weight_nanoseconds[] = {1};
};
static_assert(!layer_profile<without_w> && !layer_profile<short_w>);
static_assert(layer_profile<even_profile> && layer_profile<whole_profile>);

/// Whether a list of ops has one of a layer, by layer.
template <class Trainer>
std::vector<bool> layers_with_ops(op_list l) {
  using passes = typename Trainer::compiled::passes;
  std::vector<bool> found = std::vector<bool>(std::size_t(passes::units));
  for (op const& o : passes::ops[l]) found[std::size_t(o.unit)] = true;
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

  REQUIRE(times.each.size() == std::size_t(layers_of_net));
  auto const forward = layers_with_ops<Trainer>(op_list::forward),
             input = layers_with_ops<Trainer>(op_list::input_gradients),
             weight = layers_with_ops<Trainer>(op_list::weight_gradients);
  CHECK(std::count(forward.begin(), forward.end(), true) == layers_of_net);
  CHECK(std::count(input.begin(), input.end(), true) >= 6);
  CHECK(std::count(weight.begin(), weight.end(), true) == 5);
  for (std::size_t l = 0; l < times.each.size(); ++l) {
    INFO("layer " << l);
    CHECK((times.each[l].forward > 0) == forward[l]);
    CHECK((times.each[l].backward_input > 0) == input[l]);
    CHECK((times.each[l].backward_weight > 0) == weight[l]);
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

namespace {

/// A part of a launch.
launch_part part(int layer, op_list list, long work = 1) { return {layer, list, work}; }
constexpr op_list f = op_list::forward, b = op_list::input_gradients, w = op_list::weight_gradients;

}  // namespace

// Launches take 100 ns, and one in three is interrupted and takes 1000: mostly not the same ones,
// so the median of a layer's sums would be that of an interrupted one.
TEST_CASE("an interrupted launch spoils no layer", "[train]") {
  constexpr int micro_batches = 2;
  std::vector<timed_launch> launches;
  for (launch_part const of : {part(0, f), part(0, b), part(0, w), part(0, f), part(1, w)}) {
    timed_launch launch{{of}, {true, true}, {}};
    for (int i = 0; i < 20; ++i)
      launch.nanoseconds.push_back((i + int(launches.size())) % 3 == 0 ? 1000 : 100 + i % 2);
    launches.push_back(launch);
  }
  CHECK(times_of(launches, 2, micro_batches).each ==
        std::vector<layer_time>{{202, 101, 101}, {0, 0, 101}});
}

// The second of two micro-batches runs other launches, which keep what the first one drops.
TEST_CASE("launches of some micro-batches count in those", "[train]") {
  std::vector<timed_launch> const launches{{{part(0, f)}, {true, false, false}, {500}},
                                           {{part(0, f)}, {false, true, true}, {30}},
                                           {{part(0, f)}, {false, true, true}, {4}}};
  CHECK(times_of(launches, 1, 3).each == std::vector<layer_time>{{34, 0, 0}});
}

TEST_CASE("a launch is shared between its layers by their work, and nothing is lost", "[train]") {
  std::vector<timed_launch> const fused{
      {{part(0, f, 30), part(1, f, 10)}, {true}, {400, 400, 9000}},
      {{part(1, b, 1), part(1, w, 2), part(0, b, 1)}, {true}, {101, 99, 100}}};
  CHECK(times_of(fused, 2, 1).each == std::vector<layer_time>{{300, 25, 0}, {100, 25, 50}});
  // What recomputes takes its share, and counts for no layer.
  CHECK(times_of({{{part(0, op_list::recompute, 3), part(1, b, 1)}, {true}, {100}}}, 2, 1).each ==
        std::vector<layer_time>{{0, 0, 0}, {0, 25, 0}});
  CHECK(!is_measured({part(0, op_list::recompute)}));
  CHECK(is_measured({part(0, op_list::recompute), part(0, b)}));

  unsigned state = 1;
  auto const below = [&](unsigned n) {
    return long((state = state * 1664525 + 1013904223) >> 8) % n;
  };
  for (int repeat = 0; repeat < 1000; ++repeat) {
    std::vector<launch_part> parts;
    double all = 0;
    for (long n = 1 + below(6); n > 0; --n) {
      parts.push_back(part(int(n), f, 1 + below(2) * below(1000) + below(2) * (1L << below(61))));
      all += double(parts.back().work);
    }
    long const time = below(2) * below(1 << 20) + below(2) * (1L << 40) + below(3);
    long sum = 0;
    share_time(time, parts, [&](launch_part const& of, long share) {
      sum += share;
      CHECK(share >= 0);
      CHECK(std::abs(double(share) - double(time) * (double(of.work) / all)) < 2);
    });
    CHECK(sum == time);
  }
}

TEST_CASE("the times of all layers are those of all launches", "[train]") {
  laws::times_add_up<Small<>>();
  laws::times_add_up<Small<Stages<3>>>();
  laws::times_add_up<Small<Stages<3>, laws::LateWeights>>();
  laws::times_add_up<Small<Stages<3>, GPipe, RecomputeAll>>();
}

// Each of F, B and W is as long as its program's launches, and the schedule does not matter: B and
// W of one program are told apart as those of two are.
TEST_CASE("F, B and W are apart, in whichever program they run", "[train]") {
  auto const by_program = [](launch_seen const& seen) -> long {
    return seen.which == program::forward           ? 1000000
           : seen.which == program::backward_input  ? 3000000
           : seen.which == program::backward_weight ? 500000
                                                    : 2000000;
  };
  layer_times const split = laws::measured_by<Small<Stages<3>, laws::LateWeights>>(by_program),
                    whole = laws::measured_by<Small<Stages<3>>>(by_program);
  for (std::size_t l = 0; l < split.each.size(); ++l) {
    INFO("layer " << l);
    CHECK(split.each[l].forward == whole.each[l].forward);
    // A share is rounded, once in each launch.
    CHECK(std::abs(split.each[l].backward_input * 2 - whole.each[l].backward_input * 3) < 20);
    CHECK(std::abs(split.each[l].backward_weight * 4 - whole.each[l].backward_weight) < 20);
  }
}

TEST_CASE("times that are not sure are refused", "[train]") {
  auto const spread = [](std::vector<long> const& nanoseconds) {
    return times_of({{{part(0, f)}, {true}, nanoseconds}}, 1, 1).spread;
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
  CHECK(times_of({{{part(0, f)}, {true}, {1000, 1000, 1000}}, {{part(0, f)}, {true}, {1, 10, 19}}},
                 1, 1)
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
  layer_times const times{
      {{7, 8, 9}, {0, 20, 123456789}}, {"Linear<8>", "ReLU"}, "Net: as measured"};
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
        "      0,            // 1 ReLU\n"
        "  };\n"
        "  static constexpr long backward_input_nanoseconds[] = {\n"
        "      8,            // 0 Linear<8>\n"
        "      20,           // 1 ReLU\n"
        "  };\n"
        "  static constexpr long backward_weight_nanoseconds[] = {\n"
        "      9,            // 0 Linear<8>\n"
        "      123456789,    // 1 ReLU\n"
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
          write_profile(folder.file("a"), "a", layer_times{{{1, 2, 3}}, {"ReLU", "Tanh"}, ""});
        }) == "write_profile: times of 1 layers and 2 names: expected as many of each");
  CHECK(folder.names().empty());
  CHECK(sentence<file_error>([&] { write_profile(folder.file("none/a"), "a", layer_times{}); }) ==
        "cannot write '" + folder.file("none/a") + "': No such file or directory");
}
