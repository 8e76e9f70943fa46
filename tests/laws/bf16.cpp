// SPDX-License-Identifier: BSL-1.0
//
// Values in bfloat16 on the host: cuts, schedules, threads, recomputation and steps that overlap
// change no bit, as in fp32.
#include "catch.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

#include "laws/bit_law.hpp"
#include "laws/every_layer.hpp"
#include "laws/everything.hpp"
#include "laws/images.hpp"
#include "laws/models_of_stage_ranks.hpp"
#include "laws/overlap_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

template <class M, class... More>
using Of = Pipeline<M, BF16, PortableHost, AdamW, MicroBatchSize<2>, More...>;

template <class M, int MicroBatchCount, class... More>
void same_bits_with(int steps = 2) {
  using Count = MicroBatches<MicroBatchCount>;
  laws::same_as_one_stage<Of<M, Count>, Of<M, Count, More...>>(7, steps, 1);
}

struct Net : Model<Input<6>, Linear<8>, GELUTanh, Linear<8>, Dropout<1, 5>, GELUTanh, Linear<8>,
                   GELUTanh, Linear<4>, MSE> {};
/// The first input is read in many layers.
struct Often : Model<Named<"x", Input<4>>, Stash<"again">, Linear<4>, Tanh, Pop<"again", Multiply>,
                     Stash<"sum">, Linear<4>, GELU, Linear<4>, Pop<"sum">, MSE> {};

/// The loss in a call of train(), and the parameters after it.
template <class Trainer>
std::vector<double> trained(int steps) {
  Trainer t({.seed = 3, .optimizer = {.learning_rate = 0.01}});
  laws::mini_batches<Trainer> const data(steps);
  std::vector<double> seen;
  t.train(data.views(), [&](step_result const& r) { seen.push_back(r.loss); });
  for (float const w : laws::snapshot(t).values) seen.push_back(double(w));
  return seen;
}

}  // namespace

TEST_CASE("bf16: schedules and recomputation keep the bits", "[laws]") {
  using laws::Everything;
  same_bits_with<Everything, 4, Stages<8>, ZeroBubbleV, RecomputeAll>();
  same_bits_with<Everything, 4, Stages<3>, HostThreads<2>, laws::LateWeights,
                 RecomputeAllButLast>();
  same_bits_with<Everything, 4, Stages<2>, Recompute<op_kind::map>>();
}
TEST_CASE("bf16: every kind of layer keeps the bits in stages of its own", "[laws]") {
  same_bits_with<laws::EveryLayer, 3, Stages<laws::EveryLayer::graph.size.units>, HostThreads<2>>(
      1);
  same_bits_with<laws::Images, 3, Stages<5>, HostThreads<2>>();
  same_bits_with<laws::Vision, 3, Stages<4>, laws::LateWeights>();
  same_bits_with<laws::EveryResampling, 2, Stages<4>, HostThreads<2>>(1);
}
TEST_CASE("bf16: stages that several ranks hold have the copies of their owners", "[laws]") {
  same_bits_with<laws::Shared, 7, StageReplicas<1, 3, 2>, Averaging<9, 10>>();
  same_bits_with<laws::Shared, 6, Stages<4>, Chimera, GradientAccumulation<2>>();
}
TEST_CASE("bf16: steps that overlap have the bits of steps with a barrier", "[laws]") {
  laws::same_runs<Of<Net, OneFOneB, Stages<4>, MicroBatches<4>>,
                  Of<Net, Steady<OneFOneB>, Stages<4>, MicroBatches<4>>>(0.35);
  laws::same_runs<
      Of<Net, OneFOneB, StageReplicas<1, 2>, MicroBatches<4>, Averaging<9, 10>>,
      Of<Net, Steady<OneFOneB>, StageReplicas<1, 2>, MicroBatches<4>, Averaging<9, 10>>>(0.35, 0.05,
                                                                                         1);
}
TEST_CASE("bf16: an older version of weights has copies of its own", "[laws]") {
  // Steps are so large that weights of another version would show.
  auto const found = trained<Of<Net, PipeDream<>, Stages<3>, MicroBatches<2>>>(8),
             expected = trained<Pipeline<Net, PortableHost, AdamW, MicroBatchSize<2>, PipeDream<>,
                                         Stages<3>, MicroBatches<2>>>(8);
  REQUIRE(found.size() == expected.size());
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    apart += (found[i] - expected[i]) * (found[i] - expected[i]);
    size += expected[i] * expected[i];
  }
  CHECK(apart < 1e-3 * size);
  // One stage has no older version, so it trains as with a flush.
  CHECK(laws::same_numbers(trained<Of<Net, PipeDream<>, MicroBatches<4>>>(5),
                           trained<Of<Net, MicroBatches<4>>>(5)));
}
TEST_CASE("bf16: gradients of inputs are numbers, and keep the bits", "[laws]") {
  using one = Of<Often, InputGradients, MicroBatches<3>>;
  using many = Of<Often, InputGradients, MicroBatches<3>, Stages<4>>;
  using exact =
      Pipeline<Often, FP64, PortableHost, InputGradients, MicroBatchSize<2>, MicroBatches<3>>;
  one a({.seed = 5});
  many b({.seed = 5});
  exact c({.seed = 5});
  laws::copy_parameters(a, c);
  laws::sample_batch<one> const data(7);
  laws::sample_batch<exact> copy(7);
  copy.inputs.assign(data.inputs.begin(), data.inputs.end());
  copy.labels.assign(data.labels.begin(), data.labels.end());
  auto const found = a.input_gradients(data.view(5));
  CHECK(laws::same_numbers(found, b.input_gradients(data.view<many>(5))));
  auto const expected = c.input_gradients(copy.view(5));
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    most = std::fmax(most, std::fabs(double(found[i]) - expected[i]));
    largest = std::fmax(largest, std::fabs(expected[i]));
  }
  CHECK(most < 0.03 * largest);
}
TEST_CASE("bf16: a watcher sees numbers", "[laws]") {
  Of<Net, MicroBatches<2>, Stages<2>> t({.seed = 3});
  laws::sample_batch<decltype(t)> const data(1);
  long values = 0, rounded = 0;
  t.watch(data.view(), [&](launch_seen const& seen) {
    CHECK(seen.all_finite());
    for (int k = 0; k < seen.what->count; ++k) {
      detail::placed_operand const& o = seen.operands[k];
      auto const* const x = static_cast<float const*>(seen.values(k));
      for (long i = 0; i < o.elements && !o.is_wide; ++i)
        ++values, rounded += float(bf16(x[i])) == x[i];
    }
  });
  CHECK(values > 100);
  CHECK(rounded == values);
}
