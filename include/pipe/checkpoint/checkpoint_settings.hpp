// SPDX-License-Identifier: BSL-1.0
//
// The settings of pp::checkpoints.
#pragma once

#include <chrono>
#include <string>

#include <pipe/checkpoint/checkpoint_parts.hpp>
#include <pipe/base/text_function.hpp>

namespace pp::detail {

/// When checkpoints are saved, and which ones are kept. The same in all processes.
struct checkpoint_settings {
  long every_steps = 0;              ///< save after steps that are a multiple of it; 0: never so
  std::chrono::nanoseconds every{};  ///< save when that much time has passed; 0: never so
  int keep_last = 2;                 ///< the newest ones that are kept, at least 1
  int keep_best = 0;                 ///< beside them, those with the lowest losses
  /// Write in a thread, from a copy that takes checkpoints::copy_bytes() of memory where it is
  /// made.
  bool asynchronous = true;
  /// One file through the process of rank 0, or a part by each process, from a copy of its own.
  checkpoint_files files = checkpoint_files::one;
  std::string second_place{};  ///< a folder for what cannot be written; "": none
  /// Receives warnings, a string each, in the thread and during a call of the program; unset:
  /// stderr.
  text_function warn{};
};

}  // namespace pp::detail
