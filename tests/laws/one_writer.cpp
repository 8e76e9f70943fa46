// SPDX-License-Identifier: BSL-1.0
//
// Each datum has one writer, and its readers wait for it: what ThreadSanitizer has to see of every
// kind of schedule, under every recompute policy, with ranks of several threads. So this file is
// the one of this folder that it also runs (tests.laws.tsan).
#include "laws/bit_law.hpp"
#include "laws/eager.hpp"
#include "laws/schedules.hpp"

using namespace pp;

namespace {

/// Stages that end in results which backward does not read (norms), a skip over stages, a tied
/// table: whatever neighbours share.
struct Shared : Model<Tokens<5, 3>, Named<"table", Embedding<4>>, Stash<"a">, LayerNorm, Linear<4>,
                      RMSNorm, Attention<2>, Pop<"a">, Tied<"table">, CrossEntropy> {};

template <class... More>
using Trained =
    Pipeline<Shared, laws::Eager<PortableHost>, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

template <class... More>
void gives_the_bits_of_one_stage() {
  laws::same_as_one_stage<Trained<>, Trained<More...>>(7, 2, 3);
}

}  // namespace

TEST_CASE("neighbours share what is written once, B and W together", "[laws]") {
  gives_the_bits_of_one_stage<Stages<3>, GPipe, RecomputeAll, HostThreads<2>>();
  gives_the_bits_of_one_stage<Stages<6>, OneFOneB, RecomputeAllButLast>();
  gives_the_bits_of_one_stage<Stages<4>, laws::ManyChunks<schedules::placement::loop, 2>,
                              Recompute<op_kind::norm>>();
}
TEST_CASE("neighbours share what is written once, B and W apart", "[laws]") {
  gives_the_bits_of_one_stage<Stages<3>, laws::LastWeights, RecomputeAllButLast, HostThreads<3>>();
  gives_the_bits_of_one_stage<Stages<6>, laws::MixedWeights>();
  gives_the_bits_of_one_stage<Stages<4>, ZeroBubbleV,
                              Recompute<op_kind::norm, op_kind::attention>>();
}
