// SPDX-License-Identifier: BSL-1.0
//
// Replicas that run different numbers of accumulations: whatever these are, the bits are those of
// one process that runs all of them.
#include <cmath>
#include <cstdint>
#include <string>

#include <pipe/checkpoint/checkpoint.hpp>

#include "mpi/alike.hpp"
#include "mpi/folder.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

/// What depends on the place of a sample in the mini-batch: dropout, and labels that do not count.
struct Net : Model<Tokens<11, 4>, Named<"table", Embedding<6>>, Dropout<1, 5>, Linear<6>, Tanh,
                   LayerNorm, Tied<"table">, CrossEntropy> {};
/// One rank, accumulations of four samples, of which a replica may have all that the others leave
/// it.
using BySpeed = GradientAccumulationBySpeed<8, 8>;
template <class Sum, class... More>
using Trained =
    Pipeline<Net, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>, Sum, More...>;
/// Gradients of two buckets. Of several branches they are exchanged in turns.
struct Wide : Model<Input<1000>, Linear<2200>, Tanh, Linear<3>, MSE> {};
template <class Sum, class... More>
using OfWide = Pipeline<Wide, PortableHost, SGD, MicroBatches<1>, MicroBatchSize<1>, Sum, More...>;

/// Speeds of processes: the later the faster; the earlier; one that is far faster than the others.
double speed_of(int kind) {
  int const p = Between::process(), n = Between::processes();
  return kind == 0 ? p + 1 : kind == 1 ? 2 * (n - p) - 1 : p == n / 2 ? 1000 : 1;
}
template <class One, class Many>
void trains_alike_at_any_speed() {
  for (int kind : {0, 1, 2}) processes::trains_alike<One, Many>(speed_of(kind));
}

}  // namespace

TEST_CASE("any number of replicas gives the bits of one process", "[any]") {
  processes::trains_alike<Trained<GradientAccumulation<8>>,
                          Trained<GradientAccumulation<8>, Between>>();
  processes::trains_alike<Trained<GradientAccumulation<8>>,
                          Trained<GradientAccumulation<8>, Between, HostThreads<2>, ZeRO<1>>>();
  processes::trains_alike<OfWide<GradientAccumulation<8>>,
                          OfWide<GradientAccumulation<8>, Between, ZeRO<2>>>();
}
TEST_CASE("replicas that run accumulations by their speeds give the bits of one process", "[any]") {
  trains_alike_at_any_speed<Trained<GradientAccumulation<8>>, Trained<BySpeed, Between>>();
  trains_alike_at_any_speed<Trained<GradientAccumulation<8>>,
                            Trained<BySpeed, Between, HostThreads<2>, ZeRO<1>>>();
}
TEST_CASE("so do replicas with gradients of several buckets at any speed", "[any][long]") {
  trains_alike_at_any_speed<OfWide<GradientAccumulation<8>>, OfWide<BySpeed, Between>>();
  trains_alike_at_any_speed<OfWide<GradientAccumulation<8>>, OfWide<BySpeed, Between, ZeRO<2>>>();
}
TEST_CASE("so do replicas of several ranks") {
  using Staged = Trained<BySpeed, Between, Stages<2>, ZeroBubbleH1>;
  trains_alike_at_any_speed<Trained<GradientAccumulation<8>>, Staged>();
}
TEST_CASE("a run goes on with other shares, and with few samples", "[any]") {
  Trained<GradientAccumulation<8>> one({.seed = 3});
  Trained<BySpeed, Between> many({.seed = 3, .runtime = {.speed = speed_of(0)}}),
      others({.seed = 4, .runtime = {.speed = speed_of(2)}});
  auto const step = [&](auto& trainer, std::uint64_t seed, int samples) {
    laws::sample_batch<Trained<GradientAccumulation<8>>> const data(seed);
    return trainer.step(data.template view<std::remove_reference_t<decltype(trainer)>>(samples));
  };
  CHECK(laws::same_bits(step(one, 1, 32).loss, step(many, 1, 32).loss));
  many.save(processes::in_folder("shares"), "here");
  others.load(processes::in_folder("shares"));
  for (int samples : {1, 32, 9}) {
    CHECK(laws::same_bits(step(one, 2, samples).loss, step(others, 2, samples).loss));
    CHECK(processes::same_values(one, others));
  }
}
TEST_CASE("measured speeds move accumulations, and no bits", "[any]") {
  Trained<GradientAccumulation<8>> one({.seed = 3});
  Trained<BySpeed, Between> many({.seed = 3});
  laws::sample_batch<Trained<GradientAccumulation<8>>> const data(1);
  for (int i = 0; i < 2 * detail::replica_speeds::period + 3; ++i) {
    auto const a = one.step(data.view()), b = many.step(data.view<Trained<BySpeed, Between>>());
    REQUIRE(laws::same_bits(a.loss, b.loss));
  }
  CHECK(processes::same_values(one, many));
  auto const all = many.processes();
  CHECK(all.agree(many.own_accumulation(0) < 8));
}
TEST_CASE("a speed is stated in all processes, or in none") {
  if (Between::processes() == 1) return;
  using Many = Trained<BySpeed, Between>;
  double const speed = Between::process() == 0 ? 1 : 0;
  CHECK_THROWS_WITH(Many({.runtime = {.speed = speed}}),
                    Catch::Contains("runtime.speed is given for replica 0, and not for replica 1"));
  CHECK_THROWS_AS(Many({.runtime = {.speed = -1}}), data_error);
}
