// SPDX-License-Identifier: BSL-1.0
//
// Measured times of layers: that they are measured, that they move the cuts and the plan, and that
// a header carries them.
#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/train/profile.hpp>

#include "folder.hpp"
#include "laws/data.hpp"
#include "laws/schedules.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

struct Net : Model<Input<6>, Linear<8>, ReLU, Linear<8>, Tanh, Linear<8>, GELU, Linear<8>,
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

template <class Trainer>
void measures() {
  Trainer trainer({.seed = 1});
  laws::sample_batch<Trainer> const data(3);
  auto const before = laws::snapshot(trainer);
  layer_times const times = measure_layers(trainer, data.view(), 3);
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
  measures<Small<Stages<4>, laws::LateWeights>>();
  measures<Small<Stages<2>, GPipe, RecomputeAllButLast>>();
}

TEST_CASE("what was measured is said", "[train]") {
  Small<Stages<2>> trainer;
  laws::sample_batch<Small<Stages<2>>> const data(3);
  CHECK(measure_layers(trainer, data.view(), 1).what ==
        "Net: median of 1 training step, micro-batches of 2 samples, fp32, 2 stages, portable "
        "kernels");
  CHECK(sentence<error>([&] { measure_layers(trainer, data.view(), 0); }) ==
        "measure_layers: expected at least 1 repeat, got 0");
}

TEST_CASE("the median is in the middle", "[train]") {
  CHECK(median({3}) == 3);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(median({4, 1, 9, 2}) == 4);
  CHECK(sentence<error>([] { median({}); }) == "median: expected at least 1 number, got none");
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
