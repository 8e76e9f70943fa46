// SPDX-License-Identifier: BSL-1.0
//
// Weight versions against an oracle: one loop over the micro-batches, in doubles, with a list of
// all versions of every stage. What a version depends on are earlier gradients only, so the loop is
// an exact emulation of the pipeline.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "laws/data.hpp"
#include "laws/slope.hpp"

#include <pipe/schedule/catalog/families.hpp>

using namespace pp;
using laws::Slope, laws::same_numbers, laws::sample_batch, laws::snapshot;

namespace {

constexpr int width = 3;
constexpr int depth = 2;  // layers of a stage, so that it keeps values of its own for backward

/// N stages of `depth` layers each, but for the activations and the loss.
template <int N, class = std::make_integer_sequence<int, N - 1>>
struct Chain;
template <int N, int... Is>
struct Chain<N, std::integer_sequence<int, Is...>>
    : Model<Input<width>,
            std::enable_if_t<(Is >= 0), Seq<Linear<width>, Tanh, Linear<width>, Tanh>>...,
            Seq<Linear<width>, Tanh, Linear<width>>, MSE> {};

/// A last stage that is not trained.
struct Flat : Model<Input<width>, Linear<width>, Frozen<Linear<2>>, Slope> {};

/// Which version a forward, or a backward, of a micro-batch reads on a stage, in updates. ahead:
/// micro-batches by which forwards are ahead of backwards
struct rules {
  bool keeps_versions;  // else what a flush leaves is the newest
  long (*forward)(long micro_batch, long ahead, long ranks, long mini_batch);
  long (*backward)(long micro_batch, long ahead, long ranks, long mini_batch);
  bool predicts = false;  // forwards read what the last update predicts for their backwards
};
long from_zero(long n) { return n < 0 ? 0 : n; }
long stashed(long k, long ahead, long, long a) { return from_zero(k - ahead) / a; }
long synchronised(long k, long, long p, long a) { return from_zero(k - (p - 1)) / a; }
long doubled(long k, long, long, long a) { return from_zero(k / a - 1); }
long newest(long k, long, long, long a) { return k / a; }

template <class Family>
constexpr rules rules_of = {true, &stashed, &stashed};
template <int M>
constexpr rules rules_of<PipeDream<true, M>> = {true, &synchronised, &synchronised};
template <int M>
constexpr rules rules_of<PipeDream2BW<M>> = {true, &doubled, &doubled};
template <int M, bool Predicts>
constexpr rules rules_of<PACI<M, Predicts>> = {false, &stashed, &newest, Predicts};

/// A matrix [width, width] and a bias.
struct weights {
  double w[width][width], b[width];
};
using sample = std::vector<double>;

/// The oracle, with SGD and momentum.
class oracle {
 public:
  oracle(std::vector<weights> first, rules const& by, int mini_batch, double rate, double momentum)
      : by_(by), layers_(long(first.size())), p_(layers_ / depth), a_(mini_batch), rate_(rate),
        momentum_(momentum) {
    for (weights const& w : first) {
      versions_.push_back({w});
      sums_.push_back({}), moments_.push_back({});
    }
  }
  /// Trains on the samples of a micro-batch, of which a mini-batch has `of_all`; returns the sum of
  /// squares.
  double train(std::vector<sample> const& inputs, std::vector<sample> const& targets, double of_all,
               bool ends) {
    double loss = 0;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::vector<sample> x{inputs[i]};
      for (long s = 0; s < layers_; ++s) {
        weights const now = read_forward(s);
        sample y(width);
        for (int c = 0; c < width; ++c) {
          y[std::size_t(c)] = now.b[c];
          for (int r = 0; r < width; ++r)
            y[std::size_t(c)] += x.back()[std::size_t(r)] * now.w[r][c];
          if (s + 1 < layers_) y[std::size_t(c)] = std::tanh(y[std::size_t(c)]);
        }
        x.push_back(y);
      }
      sample g(width);
      for (std::size_t c = 0; c < width; ++c) {
        double const d = x.back()[c] - targets[i][c];
        loss += d * d;
        g[c] = 2 * d / (of_all * width);
      }
      for (long s = layers_ - 1; s >= 0; --s) {
        weights const& now = at(s, by_.backward(k_, ahead_of(s), p_, a_));
        sample const &in = x[std::size_t(s)], &out = x[std::size_t(s) + 1];
        if (s + 1 < layers_)
          for (std::size_t c = 0; c < width; ++c) g[c] *= 1 - out[c] * out[c];
        sample before(width);
        weights& sum = sums_[std::size_t(s)];
        for (int r = 0; r < width; ++r)
          for (int c = 0; c < width; ++c) {
            before[std::size_t(r)] += g[std::size_t(c)] * now.w[r][c];
            sum.w[r][c] += in[std::size_t(r)] * g[std::size_t(c)];
          }
        for (int c = 0; c < width; ++c) sum.b[c] += g[std::size_t(c)];
        g = before;
      }
    }
    ++k_;
    if (ends) {
      k_ = (k_ + a_ - 1) / a_ * a_;  // micro-batches without samples
      for (std::size_t s = 0; s < versions_.size(); ++s) update(s);
    }
    return loss;
  }
  void flush() {
    if (!by_.keeps_versions) oldest_ = long(versions_[0].size()) - 1;
  }
  weights const& newest_of(long layer) const { return versions_[std::size_t(layer)].back(); }

 private:
  /// Micro-batches by which forwards of a layer's stage are ahead.
  long ahead_of(long layer) const { return p_ - 1 - layer / depth; }
  weights read_forward(long s) const {
    long const version = std::max(oldest_, by_.forward(k_, ahead_of(s), p_, a_));
    weights now = at(s, version);
    if (!by_.predicts || version == oldest_) return now;
    weights const& before = at(s, version - 1);
    double const n = double(by_.backward(k_, ahead_of(s), p_, a_) - version);
    for (int c = 0; c < width; ++c) {
      now.b[c] += n * (now.b[c] - before.b[c]);
      for (int r = 0; r < width; ++r) now.w[r][c] += n * (now.w[r][c] - before.w[r][c]);
    }
    return now;
  }
  weights const& at(long layer, long version) const {
    return versions_[std::size_t(layer)][std::size_t(version)];
  }
  void update(std::size_t s) {
    weights next = versions_[s].back();
    auto const each = [&](double& w, double& g, double& m) {
      m = momentum_ * m + g;
      w -= rate_ * m;
      g = 0;
    };
    for (int r = 0; r < width; ++r)
      for (int c = 0; c < width; ++c) each(next.w[r][c], sums_[s].w[r][c], moments_[s].w[r][c]);
    for (int c = 0; c < width; ++c) each(next.b[c], sums_[s].b[c], moments_[s].b[c]);
    versions_[s].push_back(next);
  }
  rules by_;
  long layers_, p_, a_, k_ = 0, oldest_ = 0;
  double rate_, momentum_;
  std::vector<std::vector<weights>> versions_;
  std::vector<weights> sums_, moments_;
};

/// The weights of a trainer's layers.
template <class Trainer>
std::vector<weights> weights_of(Trainer& t) {
  std::vector<weights> all;
  auto const p = t.parameters();
  for (std::size_t i = 0; i < p.size(); i += 2) {
    weights w;
    for (std::size_t k = 0; k < width * width; ++k) w.w[k / width][k % width] = p[i].values[k];
    for (std::size_t k = 0; k < width; ++k) w.b[k] = p[i + 1].values[k];
    all.push_back(w);
  }
  return all;
}

/// Trains on a number of mini-batches in several calls, and compares losses and weights.
template <class Family, int Ranks, int MiniBatch, int Accumulations = 1>
void as_the_oracle(int steps = 3 * Ranks) {
  using Trainer = Pipeline<Chain<Ranks>, PortableHost, FP64, SGD, Stages<Ranks>,
                           GradientAccumulation<Accumulations>,
                           MicroBatches<MiniBatch / Accumulations>, MicroBatchSize<2>, Family>;
  INFO(Family::name << ", " << Ranks << " ranks, " << MiniBatch << " micro-batches");
  typename Trainer::settings s{.seed = 7};
  s.optimizer.learning_rate = 0.3, s.optimizer.momentum = 0.5;
  Trainer trainer(s), at_once(s);
  oracle expected(weights_of(trainer), rules_of<Family>, MiniBatch, 0.3, 0.5);
  std::vector<sample_batch<Trainer>> data;
  for (int i = 0; i < steps; ++i) data.emplace_back(std::uint64_t(100 + i));
  std::vector<typename Trainer::batch> views;
  // Of full micro-batches but the last of all mini-batches, which has one sample.
  for (int i = 0; i < steps; ++i) {
    int const samples = i + 1 == steps ? 1 : Trainer::samples;
    views.push_back(data[std::size_t(i)].view(samples));
  }
  std::vector<double> losses, all_losses;
  auto const see = [&](step_result const& r) { losses.push_back(r.loss); };
  auto const begin = views.begin();
  std::vector<int> flushes;
  for (int from = 0, to = 1; from < steps; from = to, to = std::min(steps, 2 * to + 1)) {
    CHECK(trainer.train(std::vector(begin + from, begin + to), see) == to - from);
    flushes.push_back(to);
  }
  if (rules_of<Family>.keeps_versions) {
    at_once.train(views, [&](step_result const& r) { all_losses.push_back(r.loss); });
    CHECK(losses == all_losses);
    CHECK(same_numbers(snapshot(trainer).values, snapshot(at_once).values));
  }

  for (int i = 0; i < steps; ++i) {
    if (std::find(flushes.begin(), flushes.end(), i) != flushes.end()) expected.flush();
    auto const& of = views[std::size_t(i)];
    long const samples = long(of.inputs.size()) / width;
    double loss = 0;
    for (long first = 0; first < samples; first += 2) {
      std::vector<sample> x, y;
      for (long k = first; k < first + 2 && k < samples; ++k) {
        x.emplace_back(of.inputs.begin() + k * width, of.inputs.begin() + (k + 1) * width);
        y.emplace_back(of.labels.begin() + k * width, of.labels.begin() + (k + 1) * width);
      }
      loss += expected.train(x, y, double(samples), first + 2 >= samples);
    }
    CHECK(losses[std::size_t(i)] == Approx(loss / double(samples * width)).epsilon(1e-11));
  }
  auto const found = weights_of(trainer);
  REQUIRE(found.size() == Ranks * depth);
  for (long layer = 0; layer < Ranks * depth; ++layer)
    for (int c = 0; c < width; ++c) {
      weights const &a = found[std::size_t(layer)], &b = expected.newest_of(layer);
      CHECK(a.b[c] == Approx(b.b[c]).epsilon(1e-10));
      for (int r = 0; r < width; ++r) CHECK(a.w[r][c] == Approx(b.w[r][c]).epsilon(1e-10));
    }
}

}  // namespace

TEST_CASE("PipeDream reads the versions of the oracle", "[laws]") {
  as_the_oracle<PipeDream<>, 1, 1>();
  as_the_oracle<PipeDream<>, 2, 1>();
  as_the_oracle<PipeDream<>, 4, 1>();
  as_the_oracle<PipeDream<>, 4, 3>();
  as_the_oracle<PipeDream<>, 8, 1>();
  as_the_oracle<PipeDream<>, 8, 4>();
}
TEST_CASE("PipeDream with vertical sync reads the versions of the oracle", "[laws]") {
  as_the_oracle<PipeDream<true>, 2, 1>();
  as_the_oracle<PipeDream<true>, 4, 2>();
  as_the_oracle<PipeDream<true>, 7, 1>();
}
TEST_CASE("PipeDream-2BW reads the versions of the oracle", "[laws]") {
  as_the_oracle<PipeDream2BW<>, 1, 1>();
  as_the_oracle<PipeDream2BW<>, 2, 1>();
  as_the_oracle<PipeDream2BW<>, 4, 3>();
  as_the_oracle<PipeDream2BW<>, 8, 16>();
}
TEST_CASE("PACI reads the versions of the oracle", "[laws]") {
  as_the_oracle<PACI<>, 1, 2>();
  as_the_oracle<PACI<>, 2, 1>();
  as_the_oracle<PACI<>, 4, 1>();
  as_the_oracle<PACI<>, 4, 5>();
  as_the_oracle<PACI<>, 8, 2>();
}
TEST_CASE("PACI with prediction reads what the oracle predicts", "[laws]") {
  as_the_oracle<PACI<0, true>, 2, 1>();
  as_the_oracle<PACI<0, true>, 4, 1>();
  as_the_oracle<PACI<0, true>, 4, 2>();
  as_the_oracle<PACI<0, true>, 4, 5>();
  as_the_oracle<PACI<0, true>, 7, 4>();
}
TEST_CASE("the micro-batches of all accumulations are a mini-batch of the oracle", "[laws]") {
  as_the_oracle<PipeDream<>, 4, 2, 2>();
  as_the_oracle<PipeDream<true>, 4, 4, 2>();
  as_the_oracle<PipeDream2BW<>, 4, 4, 4>();
  as_the_oracle<PACI<0, true>, 4, 4, 2>();
}
TEST_CASE("a prediction is exact while gradients do not change", "[laws]") {
  // The loss of the outputs is their sum, so the gradient of the first stage is always the same.
  auto const losses = [](auto trainer) {
    std::vector<double> all;
    sample_batch<decltype(trainer)> const data(3);
    std::vector const same(9, data.view());
    trainer.train(same, [&](step_result const& r) { all.push_back(r.loss); });
    return all;
  };
  auto const flushed = losses(Pipeline<Flat, FP64, SGD, Stages<2>, MicroBatches<1>>{});
  auto const predicted =
      losses(Pipeline<Flat, FP64, SGD, Stages<2>, MicroBatches<1>, PACI<0, true>>{});
  auto const stale = losses(Pipeline<Flat, FP64, SGD, Stages<2>, MicroBatches<1>, PACI<>>{});
  for (std::size_t k = 0; k < flushed.size(); ++k) {
    // Before the first update there is nothing to predict from.
    CHECK(predicted[k] == Approx(flushed[k == 1 ? 0 : k]).epsilon(1e-12));
    CHECK(stale[k] == Approx(flushed[k == 0 ? 0 : k - 1]).epsilon(1e-12));
  }
  CHECK(std::fabs(flushed[8] - flushed[0]) > 1e-3);
  using predicting = Pipeline<Flat, SGD, Stages<2>, MicroBatches<1>, PACI<0, true>>;
  CHECK(predicting::plan().stages[0].versions == 2);
  CHECK(predicting::plan().stages[1].versions == 1);
}
TEST_CASE("one stage without a flush trains as with one", "[laws]") {
  using flushed = Pipeline<Chain<3>, AdamW, MicroBatches<4>, MicroBatchSize<2>>;
  auto const same = [](auto trainer) {
    flushed plain;
    std::vector<sample_batch<flushed>> data;
    std::vector<typename decltype(trainer)::batch> views;
    for (int i = 0; i < 5; ++i) data.emplace_back(std::uint64_t(i));
    for (auto const& d : data) {
      views.push_back(d.template view<decltype(trainer)>());
      plain.step(d.view());
    }
    trainer.train(views);
    CHECK(same_numbers(snapshot(plain).values, snapshot(trainer).values));
  };
  same(Pipeline<Chain<3>, AdamW, MicroBatches<4>, MicroBatchSize<2>, PipeDream<>>{});
  same(Pipeline<Chain<3>, AdamW, MicroBatches<4>, MicroBatchSize<2>, PACI<>>{});
}
