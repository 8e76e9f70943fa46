// SPDX-License-Identifier: BSL-1.0
//
// What recomputation saves: the planner's bytes against the formulas of the papers.
#include "catch.hpp"

#include <cstdlib>

#include <pipe/pipe.hpp>

using namespace pp;
using namespace pp::detail;

namespace {

template <class M, class... Options>
using compiled = compiled_pipeline<M, option_set<PortableHost, AdamW, Options...>>;

/// A transformer block as Korthikanti et al. count it: s positions, h wide, a heads.
inline constexpr int s = 256, h = 512, a = 8;
using Block =
    Seq<Residual<LayerNorm, Attention<a>>, Residual<LayerNorm, Linear<4 * h>, GELUTanh, Linear<h>>>;
template <int Layers>
struct Gpt : Model<Tokens<1024, s>, Embedding<h>, Positions, Repeat<Layers, Block>, LayerNorm,
                   Linear<1024>, CrossEntropy> {};

/// Bytes that 12 blocks keep for one micro-batch more than 4 blocks do, per block.
template <int Samples, class... Options>
constexpr long saved_per_block() {
  using small = compiled<Gpt<4>, MicroBatchSize<Samples>, Options...>;
  using large = compiled<Gpt<12>, MicroBatchSize<Samples>, Options...>;
  return (large::plan().stages[0].saved_bytes - small::plan().stages[0].saved_bytes) / 8;
}
constexpr bool within_one_percent(double found, double expected) {
  return found > 0.99 * expected && found < 1.01 * expected;
}

}  // namespace

TEST_CASE("a block keeps what Korthikanti et al. count for it", "[passes]") {
  // Table 2 and equation 2, 2022: sbh (34 + 5 a s / h) bytes with 2-byte numbers. Of these 5 a s^2
  // b belong to the scores, which our attention never stores (as with selective recomputation,
  // equation 6: 34 sbh), and 2 sbh are one-byte dropout masks, which counters make again: 32 sbh
  // bytes, 16 numbers per position and channel.
  constexpr int b = 3;
  constexpr double numbers = 32.0 / 2 * s * b * h;
  CHECK(within_one_percent(double(saved_per_block<b>()) / sizeof(float), numbers));
  CHECK(within_one_percent(double(saved_per_block<b, FP64>()) / sizeof(double), numbers));
}

TEST_CASE("dropped kinds of op are not kept", "[passes]") {
  constexpr int b = 2;
  constexpr double unit = double(s) * b * h * sizeof(float);
  // Without the results of GELU, 4 h wide, and of both norms: 16 - 4 - 2.
  CHECK(within_one_percent(double(saved_per_block<b, Recompute<op_kind::map>>()), 12 * unit));
  CHECK(within_one_percent(double(saved_per_block<b, Recompute<op_kind::map, op_kind::norm>>()),
                           10 * unit));
  CHECK(within_one_percent(double(saved_per_block<b, Recompute<op_kind::attention>>()), 15 * unit));
  CHECK(saved_per_block<b, RecomputeAll>() == 0);
}

TEST_CASE("GPipe keeps what its Table 1 says", "[passes]") {
  // Huang et al., 2019, section 2.3: peak activations are O(N + L/K * N/M): the inputs of the
  // stages for N = M micro-batches, and one micro-batch of one stage's L/K layers while it is made
  // again.
  constexpr int M = 8, K = 4;
  using none = compiled<Gpt<16>, MicroBatches<M>, Stages<K>, ByCount, GPipe>;
  using all = compiled<Gpt<16>, MicroBatches<M>, Stages<K>, ByCount, GPipe, RecomputeAll>;
  using one = compiled<Gpt<16>, MicroBatches<1>, Stages<K>, ByCount, GPipe>;
  constexpr long input = long(s) * h * long(sizeof(float));
  for (int stage = 0; stage + 1 < K; ++stage) {
    CHECK(all::plan().stages[stage].saved_bytes == 0);
    CHECK(all::memory().chunks[stage].rings.boundary.bytes() ==
          M * input);  // N: what enters the next stage
    CHECK(none::plan().stages[stage].saved_bytes == M * one::plan().stages[stage].saved_bytes);
    // L/K * N/M: the values of one micro-batch, now in scratch, beside those that live for one
    // kernel or two.
    long const again = all::passes::programs<0, true>::layout.bytes.scratch;
    CHECK(again >= one::plan().stages[0].saved_bytes);
    CHECK(again <= one::plan().stages[0].saved_bytes + 16 * input);
  }
  // Table 1, lower half: parameters grow with K at a fixed budget per accelerator; here P = 12 L
  // h^2 + 2 V h by our count.
  constexpr double parameters = 12.0 * 16 * h * h + 2 * 1024.0 * h;
  CHECK(within_one_percent(double(all::plan().parameters), parameters + 16 * 13 * h + s * h));
}

TEST_CASE("what is made again costs what it costs", "[passes]") {
  using none = compiled<Gpt<4>, Stages<2>>;
  using all = compiled<Gpt<4>, Stages<2>, RecomputeAll>;
  long forward = 0, again = 0, backward = 0;
  for (int stage = 0; stage < 2; ++stage) {
    forward += all::plan().stages[stage].forward_flops;
    again += all::plan().stages[stage].recompute_flops;
    backward += all::plan().stages[stage].backward_flops;
    CHECK(none::plan().stages[stage].recompute_flops == 0);
  }
  CHECK(again >
        forward * 7 / 10);  // all but what nobody needs again: the last products of a residual
  CHECK(again < forward);
  CHECK(backward > forward);
  CHECK(all::times().cost(0).backward_input > none::times().cost(0).backward_input);
  CHECK(none::groups <= all::groups);
}
