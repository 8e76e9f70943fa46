// SPDX-License-Identifier: BSL-1.0
//
// A call on a trainer in numbers, by which processes find out that they make different calls: their
// weights would drift apart, or a process would wait for a message that no other process sends.
#pragma once

#include <cstdint>
#include <cstring>

#include <pipe/base/config.hpp>

namespace pp::detail {

/// A call, and the part of its arguments and of the trainer's settings that must be the same in all
/// processes. It is sent as its bytes, of which none is padding.
struct process_call {
  enum class kinds : std::uint64_t {
    step,
    accumulate,
    gradients,
    evaluate,
    forward,
    train,   ///< a step of train(), where steps overlap
    trained  ///< train() takes no more mini-batches
  };
  kinds kind = kinds::step;
  std::uint64_t seed = 0;
  std::uint64_t optimizer = 0;  ///< a hash of its settings
  /// A hash of the labels of the mini-batch, which all processes read; of an inference the outputs
  /// that it gives, one bit each.
  std::uint64_t labels = 0;
  std::uint64_t lengths = 0;  ///< a hash of the samples' lengths and of their micro-batches
  double samples = 0;         ///< of the mini-batch
  double loss_terms = 0;
  double step = 0;
  double learning_rate = 0, clip_value = 0, clip_norm = 0;

  bool operator==(process_call const& other) const {
    return std::memcmp(this, &other, sizeof(*this)) == 0;
  }
  char const* name() const {
    constexpr char const* names[]{"step",    "accumulate", "gradients",       "evaluate",
                                  "forward", "train",      "the end of train"};
    return kind <= kinds::trained ? names[int(kind)] : "an unknown one";
  }
};
static_assert(sizeof(process_call) == 11 * 8);

}  // namespace pp::detail
