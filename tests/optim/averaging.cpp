// SPDX-License-Identifier: BSL-1.0
//
// Averages of parameters: the formula, their memory, and evaluating with them.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include <unistd.h>

#include <pipe/weights/weights.hpp>

#include "laws/bit_law.hpp"
#include "laws/worse.hpp"

using namespace pp;

namespace {

struct Net : Model<Input<2, 3>, Linear<5>, LayerNorm, Frozen<Linear<5>>, Tanh, Linear<2>, MSE> {};
template <class... More>
using Trainer = Pipeline<Net, AdamW, PortableHost, MicroBatches<2>, More...>;
using Averaged = Trainer<FP64, Stages<3>, Averaging<9, 10>>;

template <class T>
std::vector<typename T::element> averages(T& trainer) {
  std::vector<typename T::element> all;
  for (auto const& p : trainer.averaged()) all.insert(all.end(), p.values.begin(), p.values.end());
  return all;
}

}  // namespace

TEST_CASE("averages follow the parameters as PyTorch's do", "[optim]") {
  Averaged t({.seed = 1, .optimizer = {.learning_rate = 0.05}});
  std::vector<double> expected = laws::snapshot(t).values;
  CHECK(averages(t) == expected);
  for (int step = 1; step <= 10; ++step) {
    laws::sample_batch<Averaged> const data(std::uint64_t(step) + 1);
    t.step(data.view());
    auto const now = laws::snapshot(t).values;
    if (step == 1) {
      CHECK(averages(t) == now);
      expected = now;
    }
    double worst = 0;
    auto const found = averages(t);
    for (std::size_t i = 0; i < now.size(); ++i) {
      expected[i] = 0.9 * expected[i] + (1 - 0.9) * now[i];
      worst = laws::worse(worst, std::fabs(found[i] - expected[i]));
    }
    CHECK(worst < 1e-15);
  }
}

TEST_CASE("averages take the place of the parameters and give it back", "[optim]") {
  Averaged t({.seed = 1, .optimizer = {.learning_rate = 0.05}});
  Trainer<FP64> other({.seed = 5});
  laws::sample_batch<Averaged> const data(1);
  for (int i = 0; i < 5; ++i) t.step(data.view());
  auto const values = laws::snapshot(t).values, average = averages(t);
  double const loss = t.evaluate(data.view());

  t.swap_averages();
  CHECK(laws::snapshot(t).values == average);
  CHECK(averages(t) == values);
  laws::copy_parameters(t, other);
  CHECK(laws::same_bits(t.evaluate(data.view()), other.evaluate({data.inputs, data.labels})));
  CHECK(t.evaluate(data.view()) != loss);
  t.gradients(data.view());
  CHECK_THROWS_WITH(t.step(data.view()), Catch::Contains("swap"));
  CHECK(t.steps() == 5);

  t.swap_averages();
  CHECK(laws::snapshot(t).values == values);
  CHECK(averages(t) == average);
  CHECK(laws::same_bits(t.evaluate(data.view()), loss));
  t.step(data.view());
}

TEST_CASE("weights that are loaded are the averages too", "[optim]") {
  std::string const path =
      (std::filesystem::temp_directory_path() / ("pipe_averages_" + std::to_string(::getpid())))
          .string();
  Averaged t({.seed = 1}), target({.seed = 2});
  laws::sample_batch<Averaged> const data(1);
  for (int i = 0; i < 3; ++i) t.step(data.view()), target.step(data.view());
  auto const values = laws::snapshot(t).values;
  save_weights(t, path);
  load_weights(target, path);
  CHECK(laws::snapshot(target).values == values);
  CHECK(averages(target) == values);

  // Loaded while averages stand in for the parameters, and only in part: the others keep theirs.
  target.step(data.view());
  auto const before = averages(target), trained = laws::snapshot(target).values;
  auto const all = detail::named_parameters(t);
  std::vector const some(all.begin(), all.begin() + 2);
  save_weights(some, path);
  target.swap_averages();
  load_weights(target, path, load_policy::partial);
  CHECK_THROWS_WITH(target.accumulate(data.view()), Catch::Contains("swap"));
  target.swap_averages();
  std::filesystem::remove(path);
  std::size_t const loaded = some[0].values.size() + some[1].values.size();
  auto const expected = [&](std::vector<double> rest) {
    std::copy_n(values.begin(), loaded, rest.begin());
    return rest;
  };
  CHECK(averages(target) == expected(before));
  CHECK(laws::snapshot(target).values == expected(trained));
}

TEST_CASE("averages change nothing else, and no bit of them depends on the stages", "[optim]") {
  using one = Trainer<Averaging<99, 100>>;
  using six = Trainer<Averaging<99, 100>, Stages<5>>;
  laws::same_as_one_stage<Trainer<>, one>();
  one a({.seed = 1});
  six b({.seed = 1});
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<one> const data(std::uint64_t(step) + 1);
    a.step(data.view());
    b.step({data.inputs, data.labels});
    CHECK(laws::same_numbers(averages(a), averages(b)));
  }
}

TEST_CASE("a rejected step leaves the averages alone", "[optim]") {
  Averaged t({.seed = 1});
  laws::sample_batch<Averaged> data(1);
  t.step(data.view());
  auto const before = averages(t);
  data.inputs[0] = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(t.step(data.view()), not_finite);
  CHECK(averages(t) == before);
}

TEST_CASE("averages are planned: one number for each that is trained", "[optim]") {
  using without = Trainer<FP64, Stages<3>>;
  Averaged const t;
  for (int s = 0; s < 3; ++s)
    CHECK(Averaged::plan.stages[s].optimizer_bytes ==
          without::plan.stages[s].optimizer_bytes + without::plan.stages[s].gradient_bytes);
  for (int r = 0; r < 3; ++r) CHECK(t.allocated_bytes(r) == Averaged::plan.rank_bytes[r]);
}
