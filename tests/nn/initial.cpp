// SPDX-License-Identifier: BSL-1.0
//
// What parameters begin as under each recipe: mean, deviation and range of what is drawn against
// torch.nn.init's formulas.
#include "catch.hpp"

#include <algorithm>
#include <cmath>

#include "laws/data.hpp"

using namespace pp;

namespace {

struct moments {
  double mean = 0, deviation = 0, largest = 0;
  explicit moments(std::span<float const> x) {
    for (float v : x) mean += v, largest = std::max(largest, std::fabs(double(v)));
    mean /= double(x.size());
    for (float v : x) deviation += (v - mean) * (v - mean);
    deviation = std::sqrt(deviation / double(x.size()));
  }
};

/// Five standard errors of a sample's mean and deviation; a uniform sample also reaches near its
/// bound and never beyond.
void is_uniform(std::span<float const> x, double bound) {
  REQUIRE(x.size() > 1000);
  moments const m(x);
  double const n = double(x.size()), deviation = bound / std::sqrt(3.0);
  CHECK(std::fabs(m.mean) < 5 * deviation / std::sqrt(n));
  CHECK(std::fabs(m.deviation / deviation - 1) < 5 / std::sqrt(5 * n));  // kurtosis 9/5
  CHECK(m.largest <= bound * 1.000001);
  CHECK(m.largest > bound * (1 - 20 / n));
}
void is_normal(std::span<float const> x, double deviation) {
  REQUIRE(x.size() > 1000);
  moments const m(x);
  double const n = double(x.size());
  CHECK(std::fabs(m.mean) < 5 * deviation / std::sqrt(n));
  CHECK(std::fabs(m.deviation / deviation - 1) < 5 / std::sqrt(2 * n));
  CHECK(m.largest > 3 * deviation);
  CHECK(m.largest < 6 * deviation);
}
bool all_zero(std::span<float const> x) {
  for (float v : x)
    if (v != 0) return false;
  return true;
}

template <class... L>
struct Net : Model<Input<30>, L..., MSE> {};

/// The parameters of a model, copied.
template <class M>
std::vector<std::vector<float>> begin() {
  Pipeline<M, PortableHost> trainer({.seed = 9});
  std::vector<std::vector<float>> all;
  for (auto const& p : trainer.parameters()) all.emplace_back(p.values.begin(), p.values.end());
  return all;
}

}  // namespace

TEST_CASE("Linear begins as its recipe says, its bias as ever", "[nn]") {
  auto const p =
      begin<Net<Linear<70, Init<Xavier>>, Linear<50, Init<XavierNormal>>, Linear<80, Init<Kaiming>>,
                Linear<60, Init<KaimingNormal>>, Linear<40, Init<Normal<3, 100>>>,
                Linear<90, Init<ScaledNormal<2, 100, 8>>>, Linear<20, Init<Zeros>>>>();
  REQUIRE(p.size() == 14);
  is_uniform(p[0], std::sqrt(6.0 / (30 + 70)));
  is_normal(p[2], std::sqrt(2.0 / (70 + 50)));
  is_uniform(p[4], std::sqrt(6.0 / 50));
  is_normal(p[6], std::sqrt(2.0 / 80));
  is_normal(p[8], 0.03);
  is_normal(p[10], 0.02 / std::sqrt(2 * 8.0));
  CHECK(all_zero(p[12]));
  int const inputs[] = {30, 70, 50, 80, 60, 40, 90};
  for (std::size_t i = 0; i < 7; ++i) {
    moments const m(p[2 * i + 1]);
    CHECK(m.largest <= 1.000001 / std::sqrt(double(inputs[i])));
    CHECK(m.largest > 0.7 / std::sqrt(double(inputs[i])));
  }
}

TEST_CASE("recipes of deep models are divided by the root of the depth", "[nn]") {
  auto const p = begin<Net<Linear<70, Init<DepthScaled<Xavier, 9>>>,
                           Linear<50, Init<DepthScaled<Normal<3, 100>, 64>, Zeros>>,
                           Linear<40, Init<DepthScaled<Kaiming, 1>>>>>();
  is_uniform(p[0], std::sqrt(6.0 / (30 + 70)) / 3);
  is_normal(p[2], 0.03 / 8);
  CHECK(all_zero(p[3]));
  is_uniform(p[4], std::sqrt(6.0 / 50));
}

TEST_CASE("a model of 64 blocks trains from a recipe divided by their depth", "[nn]") {
  struct Deep
      : Model<Tokens<7, 8>, Embedding<16>, Positions,
              Group<Init<DepthScaled<Xavier, 64>>,
                    Repeat<64, Residual<Attention<2>>, Residual<Linear<16>, Tanh, Linear<16>>>>,
              Linear<7>, ClipLogits<10>, CrossEntropy> {};
  using trainer = Pipeline<Deep, PortableHost, MicroBatchSize<4>, Stages<4>, MicroBatches<2>, Adam>;
  trainer t({.seed = 1, .optimizer = {.learning_rate = 3e-3}});
  laws::sample_batch<trainer> const data(2);
  double const first = t.step(data.view()).loss;
  CHECK(std::fabs(first - std::log(7.0)) < 1);  // without a norm the sums of 64 blocks stay small
  double last = first;
  for (int i = 0; i < 70; ++i) last = t.step(data.view()).loss;
  CHECK(last < first / 2);
}

TEST_CASE("a second recipe is for biases, and an option stands beside NoBias", "[nn]") {
  auto const p =
      begin<Net<Linear<1200, Init<Normal<2, 100>, Zeros>>, Linear<40, Init<Zeros, Normal<1, 10>>>,
                Linear<50, NoBias, Init<Xavier>>, Linear<1500, Init<Zeros, Kaiming>>>>();
  REQUIRE(p.size() == 7);
  is_normal(p[0], 0.02);
  CHECK(all_zero(p[1]));
  CHECK(all_zero(p[2]));
  CHECK_FALSE(all_zero(p[3]));
  is_uniform(p[4], std::sqrt(6.0 / (40 + 50)));
  is_uniform(p[6], std::sqrt(6.0 / 50));  // a bias has the widths of its layer
}

TEST_CASE("Attention and Embedding begin as their recipes say", "[nn]") {
  struct Words
      : Model<
            Tokens<101, 40>, Embedding<36, Init<Xavier>>, Positions,
            Attention<4, Init<Normal<2, 100>, Zeros>, OutputInit<ScaledNormal<2, 100, 12>, Zeros>>,
            Attention<3, NotCausal, NoBias, Init<Xavier>>, Attention<2, OutputInit<Zeros>>,
            Linear<7>, CrossEntropy> {};
  auto const p = begin<Words>();
  REQUIRE(p.size() == 14);
  is_uniform(p[0], std::sqrt(6.0 / (101 + 36)));
  is_normal(p[1], 0.02);
  is_normal(p[2], 0.02);
  CHECK(all_zero(p[3]));
  is_normal(p[4], 0.02 / std::sqrt(24.0));
  CHECK(all_zero(p[5]));
  is_uniform(
      p[6],
      std::sqrt(6.0 / (36 + 108)));  // in_proj_weight as a whole, as torch.nn.MultiheadAttention
  is_uniform(p[7], std::sqrt(6.0 / (36 + 36)));
  is_uniform(p[8], 1 / std::sqrt(36.0));
  CHECK(all_zero(p[10]));
  CHECK_FALSE(all_zero(p[11]));
}

TEST_CASE("a group begins all its layers alike, the innermost recipe holds", "[nn]") {
  struct Gpt2
      : Model<Tokens<101, 40>,
              Group<Init<Normal<2, 100>, Zeros>, Embedding<36>, Positions,
                    Residual<LayerNorm, Attention<3, OutputInit<ScaledNormal<2, 100, 1>, Zeros>>>,
                    Linear<40>, Group<Init<Kaiming>, Linear<50>>, Linear<44>>,
              Linear<40>, CrossEntropy> {};
  auto const p = begin<Gpt2>();
  REQUIRE(p.size() == 16);
  for (std::size_t i : {0, 1, 4, 8, 12}) is_normal(p[i], 0.02);
  is_normal(p[6], 0.02 / std::sqrt(2.0));
  for (std::size_t i : {3, 5, 7, 9, 13}) CHECK(all_zero(p[i]));
  is_uniform(p[10], std::sqrt(6.0 / 40));
  CHECK_FALSE(all_zero(p[11]));
  is_uniform(p[14], 1 / std::sqrt(44.0));
}
