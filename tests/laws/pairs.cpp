// SPDX-License-Identifier: BSL-1.0
//
// Pairs of a forward and a backward that run as one action: the bits of one stage, and of the same
// order without pairs, in which a rank does not wait for the inputs of both. ThreadSanitizer runs
// this file too (tests.laws.tsan).
#include "laws/bit_law.hpp"
#include "laws/eager.hpp"
#include "laws/models_of_stage_ranks.hpp"
#include "laws/overlap_law.hpp"

#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include <pipe/schedule/families/paired.hpp>

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
  for (double const clip : {0., 0.1}) {
    laws::same_runs<Of<>, Of<Steady<Paired<EagerOneFOneB>>, Stages<3>>>(clip);
    laws::same_runs<Of<>, Of<Steady<Paired<DualPipe>>, Stages<4>>>(clip);
  }
}
TEST_CASE("a pair begins when the inputs of both are there", "[laws]") {
  using Trainer = Of<Paired<DualPipeV>, Stages<4>>;
  Trainer trainer;
  laws::sample_batch<Trainer> const data(16);
  struct launched {
    int chunk, micro_batch;
    detail::program which;
  };
  // Launches in the order in which they end; backwards take long, so that forwards could pass them.
  std::vector<launched> log;
  std::mutex one_at_a_time;
  trainer.watch(data.view(), [&](launch_seen const& seen) {
    if (seen.which != detail::program::forward)
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    std::lock_guard const held(one_at_a_time);
    log.push_back({seen.chunk, seen.micro_batch, seen.which});
  });
  int pairs = 0;
  for (int rank = 0; rank < 2; ++rank) {
    auto const done = trainer.executed(rank);
    for (std::size_t i = 0; i < done.size(); ++i) {
      if (!done[i].what.with_next) continue;
      REQUIRE(i + 1 < done.size());
      schedules::action const first = done[i].what, second = done[i + 1].what;
      REQUIRE(detail::makes_pair(first, second));
      ++pairs;
      std::size_t begun = log.size(), there = 0;
      for (std::size_t n = log.size(); n-- > 0;) {
        launched const& l = log[n];
        bool const forward = l.which == detail::program::forward;
        if (forward && l.chunk == first.chunk && l.micro_batch == first.micro_batch) begun = n;
        if (!forward && l.which != detail::program::backward_weight &&
            l.chunk == second.chunk + 1 && l.micro_batch == second.micro_batch && there == 0)
          there = n;
      }
      CHECK(there < begun);
    }
  }
  CHECK(pairs == 11 + 11);
}
