// SPDX-License-Identifier: BSL-1.0
//
// A controller that learns from its own actions: an actor and its critic balance a pole on a cart
// by proximal policy optimization (Schulman et al., 2017). A network of one sample acts, and a
// trainer learns from what the network has met. Prints how many turns a game lasts, and the time
// of an action.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include <pipe/infer/network.hpp>
#include <pipe/pipe.hpp>
#include <pipe/weights/copy_weights.hpp>

#include "clipped.hpp"
#include "game.hpp"
using namespace pp;

// [model]
/// Scores of two actions, and beside them the value of what is seen.
struct ActorCritic
    : Model<Input<4>, Stash<"seen">, Linear<64>, Tanh, Linear<64>, Tanh, Linear<2>,
            Losses<Clipped, FurtherLoss<"value", "seen", LossWeight<1, 2>, Linear<64>, Tanh,
                                        Linear<64>, Tanh, Linear<1>, MSE>>> {};
using Trainer = Pipeline<ActorCritic, MicroBatchSize<64>, Adam>;
using Actor = network<ActorCritic>;
// [/model]

/// What an actor has met in `size` turns of some games.
struct experience {
  static constexpr std::size_t size = 32 * Trainer::samples;
  std::vector<float> seen = std::vector<float>(4 * size), old = std::vector<float>(size),
                     advantage = std::vector<float>(size), worth = std::vector<float>(size);
  std::vector<int> action = std::vector<int>(size);
};

/// Plays games and learns from them.
class player {
 public:
  explicit player(Trainer& trainer) : trainer_(trainer) { copy_weights(trainer, actor_); }

  /// Turns of the last games that have ended, 20 at most, on average.
  double turns() const {
    return std::accumulate(turns_.begin(), turns_.end(), 0.0) / double(turns_.size());
  }
  std::vector<double>& microseconds() { return microseconds_; }

  // [act]
  /// Draws an action; the logarithm of its probability, and the value of what is seen.
  struct choice {
    int action;
    float log_probability, value;
  };
  choice act(std::array<float, 4> const& seen) {
    float scores[2], value[1];
    actor_.forward<"labels", "value">(seen, scores, value, room_);
    double const right = 1 / (1 + std::exp(double(scores[0]) - double(scores[1])));
    int const action = std::bernoulli_distribution(right)(random_);
    return {action, float(std::log(action ? right : 1 - right)), value[0]};
  }
  // [/act]

  /// Plays until `e` is full; advantages are those of Schulman et al. (2016, equation 16).
  void play(experience& e) {
    using clock = std::chrono::steady_clock;
    std::vector<float> value(experience::size + 1);
    std::vector<char> ends(experience::size);
    for (std::size_t i = 0; i < experience::size; ++i) {
      auto const seen = game_.seen();
      auto const begin = clock::now();
      choice const c = act(seen);
      std::chrono::duration<double, std::micro> const took = clock::now() - begin;
      microseconds_.push_back(took.count());
      std::copy(seen.begin(), seen.end(), e.seen.begin() + long(4 * i));
      e.action[i] = c.action, e.old[i] = c.log_probability, value[i] = c.value;
      bool const fell = game_.push(c.action);
      e.worth[i] = 1;  // the reward of a turn, at first
      ends[i] = fell || game_.turns() == cart_pole::most_turns;
      if (!ends[i]) continue;
      // A game that is stopped would have gone on.
      if (!fell) e.worth[i] += discount * act(game_.seen()).value;
      if (turns_.size() == 20) turns_.erase(turns_.begin());
      turns_.push_back(game_.turns());
      game_.begin();
    }
    value[experience::size] = act(game_.seen()).value;
    float later = 0;
    for (std::size_t i = experience::size; i-- > 0;) {
      if (ends[i]) later = 0;
      float const next = ends[i] ? 0 : discount * value[i + 1];
      later = e.worth[i] + next - value[i] + discount * 0.95f * later;
      e.advantage[i] = later, e.worth[i] = later + value[i];
    }
  }

  /// Ten passes over what was met, each in another order; then the actor has the new weights.
  void learn(experience const& e) {
    constexpr std::size_t n = Trainer::samples;
    std::vector<std::size_t> order(experience::size);
    std::iota(order.begin(), order.end(), std::size_t(0));
    std::vector<float> seen(4 * n), old(n), advantage(n), worth(n);
    std::vector<int> action(n);
    for (int pass = 0; pass < 10; ++pass) {
      std::shuffle(order.begin(), order.end(), random_);
      for (std::size_t first = 0; first < order.size(); first += n) {
        double mean = 0, square = 0;
        for (std::size_t i = 0; i < n; ++i) {
          std::size_t const from = order[first + i];
          std::copy_n(&e.seen[4 * from], 4, &seen[4 * i]);
          old[i] = e.old[from], worth[i] = e.worth[from], action[i] = e.action[from];
          advantage[i] = e.advantage[from];
          mean += double(advantage[i]) / n,
              square += double(advantage[i]) * double(advantage[i]) / n;
        }
        double const deviation = std::sqrt(std::max(square - mean * mean, 0.0)) + 1e-8;
        for (float& a : advantage) a = float((double(a) - mean) / deviation);
        // [step]
        Trainer::batch b{seen, action};
        b.set<"old">(old).set<"advantage">(advantage).set<"value">(worth);
        trainer_.step(b);
        // [/step]
      }
    }
    copy_weights(trainer_, actor_);
  }

 private:
  static constexpr float discount = 0.99f;

  Trainer& trainer_;
  Actor actor_;
  Actor::workspace room_;
  cart_pole game_{1};
  std::mt19937 random_{2};
  std::vector<int> turns_;
  std::vector<double> microseconds_;
};

int main() {
  Trainer trainer({.seed = 1, .optimizer = {.learning_rate = 1e-3}, .clip_norm = 0.5});
  player p(trainer);
  experience e;
  for (int round = 1; round <= 20; ++round) {
    p.play(e);
    p.learn(e);
    std::printf("%6zu turns: %5.1f in a game\n", std::size_t(round) * experience::size, p.turns());
  }
  auto& times = p.microseconds();
  std::sort(times.begin(), times.end());
  std::printf("an action takes %.1f us (median; 99th percentile %.1f us)\n",
              times[times.size() / 2], times[times.size() * 99 / 100]);
}
