// SPDX-License-Identifier: BSL-1.0
//
// An architecture search whose candidates are planned and sifted by the compiler: those over a
// budget of parameters, work or memory make no trainer, and the program trains the rest.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <boost/hana.hpp>

#include <pipe/hana.hpp>
#include <pipe/pipe.hpp>
namespace hana = boost::hana;
using namespace pp;

// [candidates]
template <int Width, int Depth, class Activation>
struct Net : Model<Input<2>, Repeat<Depth, Linear<Width>, Activation>, Linear<2>, CrossEntropy> {};
template <int Width, int Depth, class Activation>
using Trainer =
    Pipeline<Net<Width, Depth, Activation>, Stages<2>, MicroBatches<4>, MicroBatchSize<32>, Adam>;

constexpr auto candidates = hana::cartesian_product(hana::make_tuple(
    hana::tuple_c<int, 4, 16, 64>, hana::tuple_c<int, 1, 2>, hana::tuple_t<ReLU, Tanh>));
constexpr auto is_affordable = hana::fuse([](auto width, auto depth, auto activation) {
  constexpr auto const& plan = Trainer<width, depth, decltype(activation)>::plan;
  return hana::bool_c<(plan.parameters <= 1000 && plan.step_flops <= 1'000'000 &&
                       plan.bytes <= 256 * 1024)>;
});
constexpr auto affordable = hana::filter(candidates, is_affordable);
static_assert(hana::size(affordable) == hana::size_c<10>);  // of 12
// [/candidates]

// [search]
int main() {
  std::vector<float> seen, unseen;  // points on the two arms of a spiral, half a turn apart
  std::vector<int> arm;
  for (int i = 0; i < 256; ++i) {
    float const t = float(i) / 256, angle = 9 * t + 3.1416f * float(i / 2 % 2);
    for (float const x : {t * std::cos(angle), t * std::sin(angle)})
      (i % 2 == 0 ? seen : unseen).push_back(x);
    if (i % 2 == 0) arm.push_back(i / 2 % 2);
  }
  double best = 0;
  std::string winner;
  auto const train = hana::fuse([&](auto width, auto depth, auto activation) {
    Trainer<width, depth, decltype(activation)> trainer({.optimizer = {.learning_rate = 0.02}});
    for (int step = 0; step < 200; ++step) trainer.step({seen, arm});
    double const right = accuracy(predict(trainer, unseen), arm);
    std::string const name = std::to_string(depth) + " of " + std::to_string(width) +
                             (activation == hana::type_c<ReLU> ? ", ReLU" : ", Tanh");
    std::printf("%-14s %4ld parameters, %6ld FLOPs a step, %6ld bytes: %5.1f %%\n", name.c_str(),
                trainer.plan.parameters, trainer.plan.step_flops, trainer.plan.bytes, 100 * right);
    if (right > best) best = right, winner = name;
  });
  hana::for_each(affordable, train);
  std::printf("best: %s\n", winner.c_str());
}
// [/search]
