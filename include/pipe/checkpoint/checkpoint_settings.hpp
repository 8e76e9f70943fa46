// SPDX-License-Identifier: BSL-1.0
//
// The settings of pp::checkpoints.
#pragma once

#include <chrono>
#include <string>

#include <pipe/base/text_function.hpp>
#include <pipe/checkpoint/checkpoint_parts.hpp>

namespace pp::detail {

/// The times at which checkpoints are saved, and which checkpoints are kept. All processes have the
/// same settings.
struct checkpoint_settings {
  long every_steps = 0;              ///< save after steps that are a multiple of this; 0: off
  std::chrono::nanoseconds every{};  ///< save when this much time has passed; 0: off
  int keep_last = 2;                 ///< number of newest checkpoints that are kept, at least 1
  int keep_best = 0;                 ///< number of further ones, those with the lowest losses
  /// Whether a thread writes, from a copy that takes checkpoints::copy_bytes() of memory in the
  /// process that makes it.
  bool asynchronous = true;
  /// One file through the process of rank 0, or a part by each process.
  checkpoint_files files = checkpoint_files::one;
  std::string second_place{};  ///< a folder for checkpoints that the first cannot take; "": none
  /// Receives each warning as a string, in the program's thread during a call; unset: stderr.
  text_function warn{};
};

}  // namespace pp::detail
