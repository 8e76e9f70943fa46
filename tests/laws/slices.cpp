// SPDX-License-Identifier: BSL-1.0
//
// Products of slices of bfloat16: SplitFP32, TF32 on the host, and BF16 with the bits of AMX. Cuts,
// schedules, threads and recomputation change no bit; gradients and training are those of fp32 as
// far as each precision goes.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "laws/bit_law.hpp"
#include "laws/every_layer.hpp"
#include "laws/everything.hpp"
#include "laws/gradient_law.hpp"
#include "laws/images.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

using Emulated = HostKernels<host::isa::emulated_amx>;

template <class M, class Precision, class Backend, class... More>
using Of = Pipeline<M, Precision, Backend, AdamW, MicroBatchSize<2>, More...>;

template <class M, class Precision, class Backend, int MicroBatchCount, class... More>
void same_bits_with() {
  using Count = MicroBatches<MicroBatchCount>;
  laws::same_as_one_stage<Of<M, Precision, Backend, Count>,
                          Of<M, Precision, Backend, Count, More...>>(7, 1, 1);
}
template <class Precision, class Backend>
void cuts_keep_the_bits() {
  same_bits_with<laws::Everything, Precision, Backend, 4, Stages<3>, HostThreads<2>,
                 laws::LateWeights, RecomputeAllButLast>();
  same_bits_with<laws::EveryLayer, Precision, Backend, 3,
                 Stages<laws::EveryLayer::graph.size.units>, HostThreads<2>>();
  same_bits_with<laws::Images, Precision, Backend, 3, Stages<5>, HostThreads<3>>();
}

/// Products with tails in every direction, and several blocks of the sum.
struct Wide : Model<Input<70>, Linear<300>, GELUTanh, Linear<97>, RMSNorm, Linear<33>, Tanh,
                    Linear<7>, MSE> {};
struct Pictures
    : Model<Input<9, 11, 3>, Conv2d<40, 3, Padding<1>>, GELUTanh, Conv2d<20, 3, Stride<2>>, Tanh,
            Conv2d<10, 3, Groups<2>>, Conv2d<12, 1>, Flatten, Linear<5>, MSE> {};

/// Convolutions with many filters and with few.
struct Filters : Model<Input<9, 11, 3>, Conv2d<64, 3, Padding<1>>, GELUTanh, Conv2d<20, 3>, Tanh,
                       Conv2d<52, 1>, Flatten, Linear<5>, MSE> {};

template <class M, class... More>
using Trained = Pipeline<M, MicroBatches<2>, MicroBatchSize<5>, More...>;

template <class M, class Precision, class Backend = Host>
double furthest_from_double(unsigned seed) {
  laws::float_report const r =
      laws::compare_with_double<Trained<M, Precision, Backend>, Trained<M, FP64, PortableHost>>(
          seed);
  CHECK(r.smallest > 1e-6);
  return r.worst;
}

/// The losses of a run on random mini-batches.
template <class Precision, class Backend = Host>
std::vector<double> curve(int steps) {
  using trainer = Pipeline<Wide, Precision, Backend, AdamW, MicroBatches<2>, MicroBatchSize<16>>;
  using exact = Pipeline<Wide, FP64, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<16>>;
  trainer t({.seed = 3, .optimizer = {.learning_rate = 2e-3}});
  exact first({.seed = 3});
  laws::copy_parameters(first, t);
  std::vector<double> losses;
  for (int s = 0; s < steps; ++s) {
    laws::sample_batch<trainer> data(0);
    laws::sample_batch<exact> const as(unsigned(s) + 1);
    data.inputs.assign(as.inputs.begin(), as.inputs.end());
    data.labels.assign(as.labels.begin(), as.labels.end());
    for (auto& x : data.inputs) x = typename trainer::element(float(x));
    for (auto& x : data.labels) x = typename trainer::element(float(x));
    losses.push_back(t.step(data.view()).loss);
  }
  return losses;
}
double largest_difference(std::vector<double> const& a, std::vector<double> const& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  return most;
}

/// BF16 by each unit: near fp32 arithmetic, and the bits of the unit's emulation.
template <class M>
void bf16_has_the_bits_of_units() {
  using enum host::isa;
  bool const has = host::best_isa() == avx512;
  Trained<M, BF16, HostKernels<avx512>> vectors({.seed = 1});
  laws::sample_batch<decltype(vectors)> const data(1);
  auto const gradients_of = [&](auto& trainer) {
    trainer.gradients(data.view());
    return laws::snapshot(trainer).gradients;
  };
  auto const b = gradients_of(vectors);
  auto const is_near = [&](auto const& a) {
    CHECK(laws::same_numbers(a, b) == !has);
    double apart = 0, size = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      apart += double(a[i] - b[i]) * double(a[i] - b[i]), size += double(b[i]) * double(b[i]);
    CHECK(apart < 1e-5 * size);
  };
  std::string const otherwise = host::name_of_kernels(portable);
  Trained<M, BF16, Emulated> tiles({.seed = 1});
  is_near(gradients_of(tiles));
  CHECK(tiles.runs_on() ==
        (has ? "AVX-512 and emulated AMX, with the bits of AVX-512 and AMX" : otherwise));
  Trained<M, BF16, HostKernels<emulated_avx512_bf16>> pairs({.seed = 1});
  auto const of_pairs = gradients_of(pairs);
  is_near(of_pairs);
  CHECK(pairs.runs_on() ==
        (has ? "AVX-512 and emulated AVX-512-BF16, with the bits of AVX-512 and AVX-512-BF16"
             : otherwise));
  if (!host::has_fast_avx512_bf16()) return;
  Trained<M, BF16, HostKernels<avx512_bf16>> instruction({.seed = 1});
  CHECK(laws::same_numbers(gradients_of(instruction), of_pairs));
  CHECK(instruction.runs_on() == "AVX-512 and AVX-512-BF16");
}

}  // namespace

TEST_CASE("slices: cuts, threads and recomputation keep the bits", "[laws]") {
  cuts_keep_the_bits<SplitFP32, Host>();
  cuts_keep_the_bits<BF16, Emulated>();
}
TEST_CASE("slices: gradients in three slices are those of fp32", "[laws]") {
  // The bound of float_gradient.cpp.
  CHECK(furthest_from_double<Wide, SplitFP32>(1) < 2e-5);
  CHECK(furthest_from_double<Pictures, SplitFP32>(2) < 2e-5);
}
TEST_CASE("slices: gradients in two slices are between fp32 and tf32", "[laws]") {
  // Factors of a product are off by 2^-17, and the rest of the model adds up five such products.
  CHECK(furthest_from_double<Wide, TF32>(1) < 2e-4);
  CHECK(furthest_from_double<Pictures, TF32>(2) < 2e-4);
  CHECK(furthest_from_double<Wide, TF32>(1) > furthest_from_double<Wide, SplitFP32>(1));
}
TEST_CASE("slices: a run in three slices follows the run in fp32", "[laws]") {
  auto const exact = curve<FP64, PortableHost>(40), chain = curve<FP32>(40),
             slices = curve<SplitFP32>(40);
  // Products of slices err no more than chains of multiply-adds, so no run is further from fp64
  // than fp32 is, and the two are at most twice as far apart.
  double const of_fp32 = largest_difference(chain, exact);
  INFO("fp32 " << of_fp32 << ", slices " << largest_difference(slices, exact));
  CHECK(largest_difference(slices, chain) <= 2 * of_fp32);
  CHECK(exact.back() < exact.front());
}
TEST_CASE("slices: BF16 has the bits of AMX or AVX-512-BF16 where they are asked for", "[laws]") {
  bf16_has_the_bits_of_units<Wide>();
  bf16_has_the_bits_of_units<Filters>();
}
