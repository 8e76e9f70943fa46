// SPDX-License-Identifier: BSL-1.0
//
// Attention in BF16 with the bits of AMX: cuts, threads and recomputation change no bit, and
// gradients are near those of fp32, for shared key heads, rotation, padding, keys of another
// sequence and every rule of scores.
#include "catch.hpp"

#include <vector>

#include "laws/attention_models.hpp"
#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

template <class M, class Precision, class Backend, class... More>
using Of = Pipeline<M, Precision, Backend, AdamW, MicroBatches<2>, MicroBatchSize<2>, More...>;
using Emulated = HostKernels<host::isa::emulated_amx>;

/// Hides every third distance, and with it from some queries all that is there.
struct Gaps {
  PIPE_HD static constexpr bool visible(int q, int k) { return (q - k) % 3 != 0; }
};
/// Sequences of several blocks of queries and of keys, and of none that is whole.
struct Texts
    : Model<Tokens<11, 140>, Embedding<8>,
            Residual<LayerNorm, Attention<4, Window<50>, ALiBi, KeyValueHeads<2>, HeadSize<3>>>,
            Residual<Attention<2, NotCausal, Mask<Gaps>, SoftCap<1, 2>, RoPE<>>>, LayerNorm,
            Stash<"memory">, Named<"target", Tokens<9, 35>>, Embedding<6>,
            Residual<Attention<2, QKNorm<>, KeyValueHeads<1>, HeadSize<20>, RoPE<>>>,
            Residual<CrossAttention<3, "memory">>, Linear<7>, CrossEntropy> {
  static constexpr bool pads = true;
};
/// No product but those of attention.
struct Attends : Model<Named<"keys", Input<40, 8>>, Stash<"keys">, Named<"x", Input<50, 4>>,
                       laws::attention::AttendsTo<"keys", 2>, RMSNorm, MSE> {};

template <class Backend>
std::vector<float> output() {
  Of<Attends, BF16, Backend> t({.seed = 1});
  laws::sample_batch<decltype(t)> const data(1);
  std::vector<float> y(std::size_t(4 * decltype(t)::outputs_per_sample));
  t.forward(data.view(), y);
  return y;
}

}  // namespace

TEST_CASE("attention by AMX: cuts, threads and recomputation keep the bits", "[laws]") {
  laws::same_as_one_stage<
      Of<Texts, BF16, Emulated>,
      Of<Texts, BF16, Emulated, Stages<5>, laws::LateWeights, RecomputeAll, HostThreads<2>>>(4, 2);
}
TEST_CASE("attention by AMX: gradients are near those of fp32", "[laws]") {
  laws::float_report const r =
      laws::compare_with_double<Of<Texts, BF16, Emulated>, Of<Texts, FP32, PortableHost>>(3);
  INFO("parameter " << r.worst_parameter);
  CHECK(r.worst < 0.06);
  CHECK(r.worst > 1e-4);
}
TEST_CASE("attention by AMX: BF16 takes it where products are by AMX", "[laws]") {
  bool const has = host::best_isa() == host::isa::avx512;
  auto const by_amx = output<Emulated>(), in_fp32 = output<HostKernels<host::isa::avx512>>();
  CHECK(laws::same_numbers(by_amx, in_fp32) == !has);
  double apart = 0, size = 0;
  for (std::size_t i = 0; i < by_amx.size(); ++i) {
    double const d = double(by_amx[i]) - double(in_fp32[i]);
    apart += d * d, size += double(in_fp32[i]) * double(in_fp32[i]);
  }
  CHECK(apart < 1e-5 * size);
}
