// SPDX-License-Identifier: BSL-1.0
//
// The bit law over the number of threads of a rank: every kernel in parts, every way to update.
#include "catch.hpp"

#include <pipe/backend/host/parts.hpp>

#include "laws/bit_law.hpp"
#include "laws/eager.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

/// Every kernel family that a chain has, with odd widths; one wide enough for a part to have
/// several tiles and vectors.
struct Chain : Model<Tokens<19, 9>, Embedding<35>, Positions,
                     Residual<LayerNorm, Attention<5>, Dropout<1, 4>>, Linear<44>, SwiGLU, RMSNorm,
                     Residual<LayerNorm, Linear<70>, GELUTanh, Linear<22>>, Softmax, Linear<19>,
                     CrossEntropy> {};
/// Encoder and decoder with a shared table: cross-attention, grouped heads, rotation, padding.
struct Words : Model<Named<"source", Tokens<11, 6>>, Named<"table", Embedding<12>>,
                     Residual<LayerNorm, Attention<3, KeyValueHeads<1>, RoPE<>>>, Stash<"memory">,
                     Named<"target", Tokens<11, 5>>, Tied<"table">,
                     Residual<LayerNorm, CrossAttention<3, "memory">>, Stash<"x">, Linear<6>,
                     Pop<"x", Concat>, Linear<12>, Tied<"table">, CrossEntropy> {};
struct Yes : Model<Input<5, 7>, Linear<9>, Tanh, Flatten, Linear<3>, BCE> {};
struct Far : Model<Input<5, 7>, Linear<9>, Frozen<LayerNorm>, SiLU, Linear<3>, Huber<>> {};

/// Threads and `More` against one stage with one thread.
template <class M, class Backend, class Optimizer, int Threads, class... More>
void check(std::uint64_t seed) {
  INFO(Threads << " threads");
  using one = Pipeline<M, Backend, MicroBatches<3>, MicroBatchSize<2>, Optimizer>;
  using many = Pipeline<M, laws::Eager<Backend>, HostThreads<Threads>, MicroBatches<3>,
                        MicroBatchSize<2>, Optimizer, More...>;
  laws::train_alike_from_the_start<one, many>(seed, 2);
}

}  // namespace

TEST_CASE("parts cover everything once", "[laws]") {
  for (host::extent n = 0; n < 70; ++n)
    for (host::extent const alignment : {1, 8, 16})
      for (int parts = 1; parts < 9; ++parts) {
        host::extent at = 0, most = 0;
        for (int part = 0; part < parts; ++part) {
          host::part_range const s = host::part_of(n, alignment, part, parts);
          CHECK(s.begin == (at == n ? s.begin : at));
          CHECK(s.begin % alignment == 0);
          CHECK(s.size() >= 0);
          at = s.end;
          if (s.size() > most) most = s.size();
        }
        CHECK(at == n);
        CHECK(most <= host::largest_part(n, alignment, parts));
      }
}
TEST_CASE("threads give the bits of one", "[laws]") {
  check<Chain, PortableHost, AdamW, 7, Stages<3>>(2);
  check<Words, PortableHost, AdamW, 3, Stages<4>, RecomputeAll, Averaging<9, 10>>(3);
  check<Far, PortableHost, Lion, 5, Stages<2>, laws::LateWeights>(5);
}
TEST_CASE("threads share optimizers of whole tensors", "[laws]") {
  check<Chain, PortableHost, LAMB, 3>(1);
  check<Chain, PortableHost, Muon, 2, Stages<2>>(2);
  check<Yes, PortableHost, Adafactor, 4>(3);
}
#ifdef __x86_64__
TEST_CASE("threads give the bits of one on the best instruction set", "[laws]") {
  check<Chain, Host, SGD, 3>(6);
}
#endif
