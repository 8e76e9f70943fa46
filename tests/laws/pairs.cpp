// SPDX-License-Identifier: BSL-1.0
//
// Pairs of a forward and a backward that run as one action: the bits of one stage, and of the same
// order without pairs, in which a rank does not wait for the inputs of both. ThreadSanitizer runs
// this file too (tests.laws.tsan).
#include "laws/bit_law.hpp"
#include "laws/eager.hpp"
#include "laws/models_of_stage_ranks.hpp"

#include <pipe/report/trainer_drawing.hpp>
#include <pipe/schedule/paired.hpp>

using namespace pp;

namespace {

template <class... More>
using Of = Pipeline<laws::Shared, laws::Eager<PortableHost>, AdamW, MicroBatches<8>,
                    MicroBatchSize<2>, More...>;

/// Whole and short mini-batches: in the latter, one of a pair may have no samples.
template <class... More>
void pairs_have_the_bits_of_one_stage() {
  laws::same_as_one_stage<Of<>, Of<More...>>(11, 2, 3);
}

}  // namespace

TEST_CASE("pairs have the bits of one stage", "[laws]") {
  pairs_have_the_bits_of_one_stage<Paired<EagerOneFOneB>, Stages<3>>();
  pairs_have_the_bits_of_one_stage<Paired<OneFOneB>, Stages<2>, RecomputeAll>();
  pairs_have_the_bits_of_one_stage<Paired<DualPipeV>, Stages<4>, HostThreads<2>>();
}
TEST_CASE("pairs of two directions have the bits of one stage", "[laws]") {
  pairs_have_the_bits_of_one_stage<Paired<DualPipe>, Stages<4>>();
}
TEST_CASE("pairs of steps that overlap have the bits of one stage", "[laws]") {
  using Flow = Of<Steady<Paired<EagerOneFOneB>>, Stages<3>>;
  laws::same_as_one_stage<Of<>, Flow>(11, 2, 3);
}
TEST_CASE("a pair begins when the inputs of both are there", "[laws]") {
  using Trainer = Of<Paired<DualPipeV>, Stages<4>>;
  Trainer trainer;
  laws::sample_batch<Trainer> const data(16);
  trainer.step(data.view());
  int pairs = 0;
  for (int rank = 0; rank < 2; ++rank) {
    auto const done = trainer.executed(rank);
    for (std::size_t i = 0; i < done.size(); ++i) {
      if (!done[i].what.with_next) continue;
      REQUIRE(i + 1 < done.size());
      action const backward = done[i + 1].what;
      REQUIRE(detail::makes_pair(done[i].what, backward));
      ++pairs;
      for (int other = 0; other < 2; ++other)
        for (executed_action const& e : trainer.executed(other))
          if (detail::makes_input_gradient(e.what.kind) && e.what.chunk == backward.chunk + 1 &&
              e.what.micro_batch == backward.micro_batch)
            CHECK(e.start <= done[i].start);
    }
  }
  CHECK(pairs == 11 + 11);
}
