// SPDX-License-Identifier: BSL-1.0
//
// The guard of a trainer's parameters: after an update that was cut short some parameters are
// updated and others are not, and the trainer refuses further work.
#pragma once

#include <atomic>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Whether all parameters are of the same step. Any thread may call its methods.
class update_guard {
 public:
  /// Calls update() in a step; an exception from it breaks the trainer.
  template <class Update>
  void during(long step, Update const& update) {
    try {
      update();
    } catch (...) {
      break_at(step, "its optimizer threw in the update of");
      throw;
    }
  }
  /// Makes check() throw from now on: a load of states was cut short after a step.
  [[gnu::cold]] void spoil(long step) { break_at(step, "a load was cut short after"); }
  /// Makes check() throw from now on. how: what has happened in the step, in words; the first
  /// call's words are kept
  [[gnu::cold]] void break_at(long step, char const* how) {
    long unbroken = 0;
    if (step_.compare_exchange_strong(unbroken, step)) how_.store(how);
  }
  /// throws: error if the trainer is broken
  void check() const {
    if (char const* const how = how_.load()) refuse(how, step_.load());
  }
  /// throws: error for a broken trainer
  [[noreturn, gnu::cold]] static void refuse(char const* how, long step) {
    throw_error<error>({"this trainer is broken: ", how, " step ", step,
                        ", and some parameters are updated, others are not: load a checkpoint in "
                        "another trainer"});
  }

 private:
  std::atomic<long> step_{0};              // the step that was cut short; 0: none
  std::atomic<char const*> how_{nullptr};  // what has happened, in words
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
