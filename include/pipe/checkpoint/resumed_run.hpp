// SPDX-License-Identifier: BSL-1.0
//
// The part of a checkpoint that a program sees: the place in the program's data, and the progress
// of the run.
#pragma once

#include <concepts>
#include <cstdlib>
#include <string>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

namespace pp {

/// A place in a program's data, kept in a checkpoint: a number or a short text, which only the
/// program understands.
struct data_position {
  std::string text;

  data_position() = default;
  data_position(std::string of) : text(std::move(of)) {}
  data_position(char const* of) : text(of) {}
  data_position(std::integral auto n) : text(std::to_string(n)) {}

  /// The number; 0 if there is no position.
  ///
  /// throws: data_error if the text is not such a number
  long number() const;
  friend bool operator==(data_position const&, data_position const&) = default;
};

/// The result of load(): the state that a program restores itself.
struct resumed_run {
  long steps = 0;          ///< training steps done: as trainer.steps()
  int accumulated = 0;     ///< mini-batches that wait for the next step: as trainer.accumulated()
  data_position position;  ///< the position that was given to save()
  /// A sentence that says why the run does not go on bit for bit: other arithmetic has made the
  /// checkpoint. Empty: the run goes on bit for bit, as far as is known.
  std::string other_bits{};
};

}  // namespace pp
#ifdef PIPE_DEFINED
#include <pipe/checkpoint/resumed_run.inl>
#endif
