// SPDX-License-Identifier: BSL-1.0
//
// Replicas that divide gradients and parameters (ZeRO<2>, ZeRO<3>), with several micro-batches in a
// accumulation: under every kind of schedule the bits are those of one process.
#include <cstdint>
#include <vector>

#include "mpi/alike.hpp"

using namespace pp;

namespace {

/// Parameters that replicas divide, some that they do not, a shared and a frozen one, and buffers.
struct Mixed : Model<Tokens<300, 3>, Named<"table", Embedding<128>>, Positions,
                     Residual<LayerNorm, Attention<2>>, Linear<260>, BatchNorm, GELUTanh,
                     Frozen<Linear<260>>, GELUTanh, Linear<260>, Tanh, Linear<128>, LayerNorm,
                     Tied<"table">, CrossEntropy> {};
/// Accumulations of four micro-batches, four of which are a mini-batch of 16 samples.
template <class... More>
using Of = Pipeline<Mixed, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<1>,
                    GradientAccumulation<4>, More...>;
template <class... More>
void is_alike() {
  processes::trains_alike<Of<>, Of<Between, More...>>();
}

}  // namespace

TEST_CASE("replicas that divide gradients add up several micro-batches as one process does") {
  is_alike<ZeRO<2>, Stages<4>, ZeroBubbleV>();
}
TEST_CASE("replicas that divide parameters read them for several micro-batches") {
  is_alike<ZeRO<3>, Stages<2>, ZeroBubbleH1, RecomputeAll, HostThreads<2>>();
}
TEST_CASE("so they do of one stage, and of several schedules", "[long]") {
  is_alike<ZeRO<2>>();
  is_alike<ZeRO<3>, Stages<2>, OneFOneB, HostThreads<2>>();
  is_alike<ZeRO<3>, Stages<4>, Interleaved<2>>();
}
TEST_CASE("a program may see one parameter at a time") {
  Of<Between, ZeRO<3>> trainer({.seed = 3});
  Of<> one({.seed = 3});
  // [each]
  double sum = 0;
  for_each_parameter(trainer, [&](auto const& p) {  // in all processes
    for (float const value : p.values) sum += value;
  });
  // [/each]
  double all = 0;
  for (auto const& p : one.parameters())
    for (float const value : p.values) all += value;
  CHECK(laws::same_bits(sum, all));
}
TEST_CASE("gradients of several micro-batches are whole, and may be accumulated") {
  if (Between::processes() > 1) return;  // each of which is an accumulation
  using One = Pipeline<Mixed, PortableHost, AdamW, MicroBatches<4>>;
  using Many = Pipeline<Mixed, PortableHost, AdamW, MicroBatches<4>, Between, ZeRO<3>>;
  One one({.seed = 3, .clip_norm = 0.1});
  Many many({.seed = 3, .clip_norm = 0.1});
  for (int step = 0; step < 2; ++step) {
    laws::sample_batch<One> const first{std::uint64_t(step)}, second{std::uint64_t(step) + 7};
    one.accumulate(first.view(4)), many.accumulate(first.view<Many>(4));
    auto const a = one.step(second.view(3)), b = many.step(second.view<Many>(3));
    CHECK(laws::same_losses(a, b));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(processes::same_parameters(one, many));
  }
}
TEST_CASE("a replica has whole gradients only where several micro-batches add to them") {
  auto const bytes = [](auto const& plan) { return plan.rank_bytes_of(0, 4, 1); };
  long const divided = bytes(Of<Between, ZeRO<3>>::plan()),
             state = bytes(Of<Between, ZeRO<1>>::plan()), all = bytes(Of<Between>::plan());
  CHECK(divided < state);
  CHECK(state < all);
}
