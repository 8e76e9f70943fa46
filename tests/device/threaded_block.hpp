// SPDX-License-Identifier: BSL-1.0
//
// A block whose threads are threads: for ThreadSanitizer, which sees what one thread at a time
// cannot show, a barrier that is missing. A warp meets in every atom, and one of its threads does
// what the warp does together.
#pragma once

#include <barrier>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include <pipe/backend/cuda/core/block.hpp>

namespace on_host {

/// When an asynchronous copy happens: as soon, or as late, as it may.
enum class copies_happen : unsigned char { at_once, when_awaited };

/// What the threads of a block share.
template <class Body>
struct gathering {
  std::unique_ptr<typename Body::shared> shared = std::make_unique<typename Body::shared>();
  std::vector<typename Body::state> states = std::vector<typename Body::state>(Body::threads);
  std::barrier<> all{Body::threads};
  std::vector<std::unique_ptr<std::barrier<>>> warps;

  gathering() {
    for (int first = 0; first < Body::threads; first += pp::cuda::warp_size)
      warps.push_back(std::make_unique<std::barrier<>>(pp::cuda::warp_size));
  }
};

/// A thread's view of its block.
template <class Body>
class threaded_block {
 public:
  using state = typename Body::state;
  using shared_type = typename Body::shared;

  threaded_block(gathering<Body>& of, int thread, copies_happen when)
      : of_(of), thread_(thread), when_(when) {}

  void begin(pp::cuda::extent index) {
    index_ = index;
    std::memset(static_cast<void*>(&of_.states[std::size_t(thread_)]), 0xff, sizeof(state));
    if (thread_ == 0) std::memset(static_cast<void*>(of_.shared.get()), 0xff, sizeof(shared_type));
    copies_.clear();
    committed_ = 0;
    of_.all.arrive_and_wait();
  }
  void end() { of_.all.arrive_and_wait(); }

  pp::cuda::extent position() const { return index_; }
  shared_type& shared() const { return *of_.shared; }

  template <class F>
  void phase(F f) {
    f(thread_, of_.states[std::size_t(thread_)]);
    of_.all.arrive_and_wait();
  }
  template <class F>
  void part(F f) {
    f(thread_, of_.states[std::size_t(thread_)]);
  }

  template <class F>
  void together(F f) {
    int const lane = thread_ % pp::cuda::warp_size;
    std::barrier<>& warp = *of_.warps[std::size_t(thread_ / pp::cuda::warp_size)];
    warp.arrive_and_wait();
    if (lane == 0) f(thread_);
    warp.arrive_and_wait();
  }
  state& of(int thread) { return of_.states[std::size_t(thread)]; }

  void copy_later(void* to, void const* from, int bytes) {
    copies_.push_back({to, from, bytes, committed_});
    if (when_ == copies_happen::at_once) copy(copies_.back());
  }
  void commit() { ++committed_; }
  void await(int pending) {
    std::size_t kept = 0;
    for (later const& c : copies_)
      if (c.group >= committed_ - pending)
        copies_[kept++] = c;
      else if (when_ == copies_happen::when_awaited)
        copy(c);
    copies_.resize(kept);
    of_.all.arrive_and_wait();
  }

 private:
  struct later {
    void* to;
    void const* from;  // null: zeros
    int bytes, group;
  };
  static void copy(later const& c) {
    if (c.from == nullptr)
      std::memset(c.to, 0, std::size_t(c.bytes));
    else
      std::memcpy(c.to, c.from, std::size_t(c.bytes));
  }

  gathering<Body>& of_;
  int thread_;
  copies_happen when_;
  pp::cuda::extent index_ = 0;
  std::vector<later> copies_;
  int committed_ = 0;
};

inline copies_happen when_threads_copy = copies_happen::at_once;

/// Threads that stay: starting some hundred for every kernel would take longer than running it.
class crew {
 public:
  static crew& all() {
    static crew one;
    return one;
  }
  /// work(thread) in `count` threads at once; returns when all are done.
  void run(int count, std::function<void(int)> const& work) {
    while (int(threads_.size()) < count)
      threads_.emplace_back([this, t = int(threads_.size())] { wait_for_work(t); });
    std::unique_lock lock(guard_);
    work_ = &work;
    wanted_ = left_ = count;
    ++round_;
    starts_.notify_all();
    ends_.wait(lock, [&] { return left_ == 0; });
  }
  ~crew() {
    {
      std::lock_guard const lock(guard_);
      over_ = true;
    }
    starts_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

 private:
  void wait_for_work(int me) {
    long done = 0;
    std::unique_lock lock(guard_);
    for (;;) {
      starts_.wait(lock, [&] { return over_ || (round_ > done && me < wanted_); });
      if (over_) return;
      done = round_;
      auto const* const work = work_;
      lock.unlock();
      (*work)(me);
      lock.lock();
      if (--left_ == 0) ends_.notify_one();
    }
  }

  std::mutex guard_;
  std::condition_variable starts_, ends_;
  std::function<void(int)> const* work_ = nullptr;
  int wanted_ = 0, left_ = 0;
  long round_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;
};

/// All blocks of a kernel, one after the other.
template <class Body, class Arguments>
void run_on_threads(Arguments const& a, pp::cuda::extent blocks) {
  gathering<Body> together;
  crew::all().run(Body::threads, [&](int thread) {
    threaded_block<Body> block(together, thread, when_threads_copy);
    for (pp::cuda::extent i = 0; i < blocks; ++i) {
      block.begin(i);
      Body::run(block, a);
      block.end();
    }
  });
}

}  // namespace on_host
