// SPDX-License-Identifier: BSL-1.0
//
// One small model with whatever a schedule could get wrong, trained under any of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "laws/bit_law.hpp"
#include "laws/eager.hpp"
#include "laws/everything.hpp"

namespace laws {

/// A mini-batch of ten samples: no multiple of any number of ranks that is tried.
template <class... More>
using Trained = pp::Pipeline<Everything, laws::Eager<pp::PortableHost>, pp::AdamW,
                             pp::MicroBatches<5>, pp::MicroBatchSize<2>, More...>;

/// Gradients of a run in which every launch takes some time more, another time each.
template <class Trainer>
std::vector<float> gradients_with_delays(Trainer& trainer, sample_batch<Trainer> const& data) {
  trainer.watch(data.view(), [](pp::launch_seen const& seen) {
    constexpr unsigned most = 100;  // microseconds
    auto const which = std::uint64_t(seen.micro_batch * 1000 + seen.launch);
    auto const random = pp::math::random_block(1, std::uint64_t(seen.chunk), which).word[0];
    std::this_thread::sleep_for(std::chrono::microseconds(random % most));
  });
  return snapshot(trainer).gradients;
}

/// Three steps on ten, seven and four samples: a micro-batch with one sample, then some with none.
/// And what was allocated, and a run at other times than any plan has.
template <class Schedule, int StageCount, class... More>
void gives_the_bits_of_one_stage() {
  using many = Trained<Schedule, pp::Stages<StageCount>, More...>;
  same_as_one_stage<Trained<>, many>(7, 3, 3);
  many trainer;
  for (int r = 0; r < many::plan().rank_count; ++r)
    CHECK(trainer.allocated_bytes(r) == many::plan().rank_bytes[r]);
  sample_batch<many> const data(9);
  trainer.gradients(data.view());
  auto const expected = snapshot(trainer).gradients;
  CHECK(same_numbers(gradients_with_delays(trainer, data), expected));
}

}  // namespace laws
