// SPDX-License-Identifier: BSL-1.0
//
// Steps as CUDA graphs: a trainer that replays them has the bits of one that runs by streams, which
// a timeline asks for, at changing rates and accumulations. Compiled wherever nvcc is; run wherever
// a GPU is.
#include "cuda/device_laws.hpp"
#include "laws/everything.hpp"

using namespace pp;

namespace {

template <class M, class... Options>
void has_the_bits_of_streams() {
  using trainer =
      Pipeline<M, Cuda, AdamW, Averaging<9, 10>, MicroBatches<3>, MicroBatchSize<2>, Options...>;
  typename trainer::settings const s{.seed = 5, .clip_value = 0.02, .clip_norm = 0.1};
  auto timed = s;
  timed.runtime.timeline = true;
  trainer by_graph(s), by_streams(timed);
  INFO(by_graph.runs_on());
  CHECK(by_graph.runs_on().find("steps as CUDA graphs") != std::string::npos);
  for (int i = 0; i < 7; ++i) {
    laws::sample_batch<trainer> const data(std::uint64_t(i) + 1);
    auto const batch = data.view(trainer::samples - (i == 2 ? 1 : 0));
    double const rate = 0.01 / (1 + i);
    for (int k = 0; k < i % 3; ++k)
      CHECK(laws::same_bits(by_graph.accumulate(batch).loss, by_streams.accumulate(batch).loss));
    auto const a = by_graph.step(batch, rate), b = by_streams.step(batch, rate);
    CHECK(laws::same_bits(a.loss, b.loss));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(a.skipped == b.skipped);
    CHECK(laws::same_numbers(laws::snapshot(by_graph).values, laws::snapshot(by_streams).values));
    CHECK(laws::same_bits(by_graph.evaluate(batch), by_streams.evaluate(batch)));
  }
}

/// Products for cuBLASLt.
struct Wide : Model<Input<16>, Linear<32>, GELUTanh, Dropout<1, 4>, Linear<16>, RMSNorm, Linear<8>,
                    CrossEntropy> {};

}  // namespace

TEST_CASE("replayed steps have the bits of steps by streams", "[gpu]") {
  has_the_bits_of_streams<laws::Everything>();
  has_the_bits_of_streams<laws::Everything, Stages<4>, ZeroBubbleV, RecomputeAll>();
}
TEST_CASE("replayed steps with products by cuBLASLt have the bits of steps by streams", "[gpu]") {
  has_the_bits_of_streams<Wide, Stages<2>, BF16, CublasLtProducts>();
}
TEST_CASE("a replayed step that overflows is skipped", "[gpu]") {
  has_the_bits_of_streams<Wide, Stages<2>, FP16>();
}
