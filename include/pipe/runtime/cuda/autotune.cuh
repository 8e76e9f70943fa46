// SPDX-License-Identifier: BSL-1.0
//
// Autotuning: the faster of two implementations of a kernel group on this device, timed by events
// on temporary operands.
#pragma once

#include <pipe/backend/cuda/core/arguments.hpp>
#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/base/list.hpp>
#include <pipe/runtime/cuda/resources.cuh>

namespace pp::cuda {

/// Operands for one launch of a group. They are filled with the byte 0x3c, which makes a normal
/// number in every floating-point format: denormals and NaN could distort the times.
class autotuner {
 public:
  /// bytes: size of each operand by index, 0 for none
  ///
  /// throws: pp::error if the device has no memory for the operands
  autotuner(detail::list<long, detail::group::max_operands> const& bytes, long workspace_bytes) {
    auto const give = [&](long size, int filling = 0x3c) -> void* {
      if (size == 0) return nullptr;
      device_buffer& made = memory_[count_++];
      made = device_buffer(size);
      check(cudaMemset(made.data(), filling, std::size_t(size)), "filling of operands");
      return made.data();
    };
    for (int i = 0; i < detail::group::max_operands; ++i) a_.operand[i] = give(bytes[i]);
    a_.workspace = give(workspace_bytes);
    a_.run = static_cast<run_state const*>(give(long(sizeof(run_state))));
    a_.tickets = static_cast<unsigned*>(give(most_tickets * long(sizeof(unsigned)), 0));
    a_.training = true;
    check(cudaDeviceSynchronize(), "filling of operands");
  }

  /// Whether `one` is faster than `other`: the best of five rounds, alternating, after a warm-up
  /// round.
  template <class One, class Other>
  bool is_faster(One const& one, Other const& other) {
    constexpr int rounds = 5;
    float best = 0, best_of_other = 0;
    for (int i = 0; i <= rounds; ++i) {
      float const mine = milliseconds(one), theirs = milliseconds(other);
      if (i == 0) continue;
      if (i == 1 || mine < best) best = mine;
      if (i == 1 || theirs < best_of_other) best_of_other = theirs;
    }
    return best < best_of_other;
  }

 private:
  /// Duration of several consecutive launches.
  template <class Launch>
  float milliseconds(Launch const& launch) {
    constexpr int launches = 8;
    check(cudaEventRecord(begin_, on_), "record of an event");
    for (int i = 0; i < launches; ++i) launch(a_, a_.operand, on_);
    check(cudaEventRecord(end_, on_), "record of an event");
    check(cudaStreamSynchronize(on_), "timing of a kernel");
    float ms = 0;
    check(cudaEventElapsedTime(&ms, begin_, end_), "time between events");
    return ms;
  }

  /// The operands and the workspace, freed with this object.
  device_buffer memory_[detail::group::max_operands + 3];
  int count_ = 0;
  arguments a_;
  stream on_;
  event begin_{true}, end_{true};
};

}  // namespace pp::cuda
