// SPDX-License-Identifier: BSL-1.0
//
// The threads that work on one rank's kernels together: the rank's own and, with HostThreads<N>, N - 1 others, which wait
// between launches as ranks wait for each other: they spin for a while, then sleep.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/runtime/pinning.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp {

class team {
 public:
  team() = default;
  /// `first_core`: the first of the cores that its threads are pinned to, or -1. To be called on the rank's own thread.
  PIPE_COLD team(int size, std::chrono::nanoseconds spin, int first_core) : size_(size), all_(new shared) {
    all_->spin = spin;
    try {
      for (int part = 1; part < size; ++part)
        all_->helpers.emplace_back([all = all_.get(), part, first_core] {
          if (first_core >= 0) pin_this_thread(first_core + part);
          all->help(part);
        });
    } catch (...) {
      size_ = int(all_->helpers.size()) + 1;
      dismiss();
      throw;
    }
    if (first_core >= 0) pin_this_thread(first_core);  // last: those that it starts have the cores that it has
  }
  team(team&& other) noexcept : size_(std::exchange(other.size_, 1)), all_(std::move(other.all_)) {}
  team& operator=(team&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(all_, other.all_);
    return *this;
  }
  ~team() { dismiss(); }

  int size() const { return size_; }

  /// work(part) for every part in [0, size()), each on a thread of its own, part 0 on this one; returns when all are done. The
  /// first exception of any of them is thrown here.
  template <class Work>
  void run(Work const& work) const {
    if (size_ == 1) return work(0);
    run_all(&work, [](void const* w, int part) { (*static_cast<Work const*>(w))(part); });
  }

 private:
  void run_all(void const* work, void (*call)(void const*, int)) const {
    shared& all = *all_;
    all.work = work;
    all.call = call;
    all.done.reset();
    all.begun.advance();
    all.attempt(0);
    failure_flag never{false};
    all.done.wait(size_ - 1, without_end(all.spin), never);
    if (all.failure) std::rethrow_exception(std::exchange(all.failure, nullptr));
  }

  struct shared {
    std::vector<std::thread> helpers;
    std::chrono::nanoseconds spin{};
    progress begun, done;
    void const* work = nullptr;
    void (*call)(void const* work, int part) = nullptr;  // null: go home
    std::mutex failure_mutex;
    std::exception_ptr failure;

    void attempt(int part) {
      try {
        call(work, part);
      } catch (...) {
        std::lock_guard const lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
    }
    void help(int part) {
      failure_flag never{false};
      for (int seen = 0;;) {
        seen = progress::after(seen);
        begun.wait(seen, without_end(spin), never);
        if (call == nullptr) return;
        attempt(part);
        done.add();
      }
    }
  };

  PIPE_COLD void dismiss() {
    if (!all_) return;
    all_->call = nullptr;
    all_->begun.advance();
    for (std::thread& t : all_->helpers) t.join();
    all_.reset();
  }

  int size_ = 1;
  std::unique_ptr<shared> all_;
};

}  // namespace pp
