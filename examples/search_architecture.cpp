// SPDX-License-Identifier: BSL-1.0
//
// An architecture search whose candidates are a list of models, planned and sifted by the compiler:
// those over a budget of parameters, work or memory make no trainer, and the program trains the
// rest.
#include <cmath>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>
namespace hana = boost::hana;
using namespace pp;

// [candidates]
template <int Width, int Depth, class Activation>
struct Candidate
    : Model<Input<2>, Repeat<Depth, Linear<Width>, Activation>, Linear<2>, CrossEntropy> {
  static std::string called() {
    return std::to_string(Depth) + " of " + std::to_string(Width) + ", " +
           (std::is_same_v<Activation, ReLU> ? "ReLU" : "Tanh");
  }
};
template <class M>
using Trainer = Pipeline<M, Stages<2>, MicroBatches<4>, MicroBatchSize<32>, Adam>;

constexpr auto choices = hana::cartesian_product(hana::make_tuple(
    hana::tuple_c<int, 4, 16, 64>, hana::tuple_c<int, 1, 2>, hana::tuple_t<ReLU, Tanh>));
constexpr auto candidates = hana::transform(
    choices, hana::fuse([](auto width, auto depth, auto activation) {
      return hana::type_c<Candidate<width, depth, typename decltype(activation)::type>>;
    }));

constexpr auto is_affordable = [](auto model) {
  constexpr auto const& plan = Trainer<typename decltype(model)::type>::plan;
  return hana::bool_c<(plan.parameters <= 1000 && plan.step_flops <= 1'000'000 &&
                       plan.bytes <= 256 * 1024)>;
};
constexpr auto affordable = hana::filter(candidates, is_affordable);
static_assert(hana::size(candidates) == hana::size_c<12> &&
              hana::size(affordable) == hana::size_c<10>);
// [/candidates]

/// Two arms of a spiral, half a turn apart.
struct points {
  std::vector<float> where;
  std::vector<int> arm;
  points(int count, float offset) {
    for (int i = 0; i < count; ++i) {
      float const t = (float(i) + offset) / float(count), angle = 9 * t + 3.1416f * float(i % 2);
      where.insert(where.end(), {t * std::cos(angle), t * std::sin(angle)});
      arm.push_back(i % 2);
    }
  }
};

// [search]
int main() {
  points const seen(128, 0), unseen(128, 0.5);
  double best = 0;
  std::string name;
  hana::for_each(affordable, [&](auto model) {
    using M = typename decltype(model)::type;
    Trainer<M> trainer({.seed = 1, .optimizer = {.learning_rate = 0.02}});
    for (int step = 0; step < 200; ++step) trainer.step({seen.where, seen.arm});
    double const right = accuracy(predict(trainer, unseen.where), unseen.arm);
    std::printf("%-14s %4ld parameters, %6ld FLOPs a step, %6ld bytes: %5.1f %%\n",
                M::called().c_str(), trainer.plan.parameters, trainer.plan.step_flops,
                trainer.plan.bytes, 100 * right);
    if (right > best) best = right, name = M::called();
  });
  std::printf("best: %s\n", name.c_str());
}
// [/search]
