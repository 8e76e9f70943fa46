// SPDX-License-Identifier: BSL-1.0
//
// The warnings of a run's checkpoints, kept until the program is in a call and can be told: a
// checkpoint that cannot be saved ends no training. A thread that writes adds warnings, and has
// ended when they are told.
#pragma once

#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <pipe/base/text_function.hpp>

namespace pp::detail {

class checkpoint_warnings {
 public:
  /// The texts that wait, the oldest first.
  std::vector<std::string> texts;

  /// Keeps the exception in flight, without taking memory, for take_failure() or tell().
  void keep_failure() noexcept { failure_ = std::current_exception(); }
  std::exception_ptr take_failure() noexcept { return std::exchange(failure_, nullptr); }
  /// Does work without which the training goes on: want of memory becomes a warning.
  template <class Work>
  void guard(Work const& work) {
    try {
      work();
    } catch (std::bad_alloc const&) {
      keep_failure();
    }
  }
  /// Passes all warnings to a function; without a function they go to stderr.
  ///
  /// law:    without memory to tell a warning, the warning waits for the next call
  /// throws: the failure that was kept, unless it is a warning; what `warn` throws
  void tell(text_function const& warn) {
    if (std::exception_ptr const failure = failure_) try {
        std::rethrow_exception(failure);
      } catch (std::bad_alloc const&) {
        texts.emplace_back("no memory to save a checkpoint (the training goes on)");
        failure_ = nullptr;
      } catch (...) {
        failure_ = nullptr;
        throw;
      }
    while (!texts.empty()) {
      std::string text = std::move(texts.front());
      texts.erase(texts.begin());
      try {
        if (warn)
          warn(text);
        else
          std::fprintf(stderr, "pipe: %s\n", text.c_str());
      } catch (std::bad_alloc const&) {
        texts.insert(texts.begin(), std::move(text));  // at its old place: no memory is taken
        throw;
      }
    }
  }

 private:
  std::exception_ptr failure_;
};

}  // namespace pp::detail
