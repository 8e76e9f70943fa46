// SPDX-License-Identifier: BSL-1.0
//
// The first exception of any thread of a run. It ends the run, and the caller of the run sees it.
#pragma once

#include <atomic>
#include <exception>
#include <string>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp::detail {

/// Keeps the first exception; later ones are its consequences.
class first_failure {
 public:
  failure_flag const& flag() const { return failed_; }

  /// Keeps an exception if it is the first; returns whether it is. The thread with the first
  /// exception sets the flag after the exception is there.
  [[gnu::cold]] bool set(std::exception_ptr e) {
    if (has_one_.exchange(true)) return false;
    first_ = std::move(e);
    failed_.store(true, std::memory_order_release);
    return true;
  }
  /// Rethrows the first exception, if there is one, and forgets it.
  ///
  /// needs: no thread works on the run any more
  void rethrow() {
    if (!failed_.load()) return;
    failed_.store(false);
    has_one_.store(false);
    std::rethrow_exception(std::exchange(first_, nullptr));
  }

 private:
  failure_flag failed_{false};
  std::atomic<bool> has_one_{false};
  std::exception_ptr first_;
};

/// The text of an exception.
[[gnu::cold]] inline std::string what_of(std::exception_ptr const& e) {
  try {
    std::rethrow_exception(e);
  } catch (std::exception const& x) {
    return x.what();
  } catch (...) {
    return "an exception that is no std::exception";
  }
}

}  // namespace pp::detail
