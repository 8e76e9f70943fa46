// SPDX-License-Identifier: BSL-1.0
//
// A block of threads on the CPU, to run kernel bodies without a GPU: see block.hpp. What a correct
// body does not depend on can be
// chosen: the order of the threads in a phase, and the contents of uninitialised memory.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <type_traits>
#include <vector>

#include <pipe/backend/cuda/core/block.hpp>

namespace pp::cuda {

/// In which order the threads of a phase run.
enum class thread_order : unsigned char { ascending, descending, interleaved };

/// What blocks of all kernels share: their memory, and asynchronous copies. Not a template: tests
/// have hundreds of kernels.
class host_block_memory {
 public:
  // ---- asynchronous copies: see copy.hpp. They happen when a thread waits for them, not before.
  // ----

  void copy_later(void* to, void const* from, int bytes) {
    copies_.push_back({to, from, bytes, committed_});
  }
  void commit() { ++committed_; }
  /// Until all but the last `Pending` committed groups have been copied.
  void await(int pending) {
    std::size_t kept = 0;
    for (later const& c : copies_)
      if (c.group >= committed_ - pending)
        copies_[kept++] = c;
      else if (c.from == nullptr)
        std::memset(c.to, 0, std::size_t(c.bytes));
      else
        std::memcpy(c.to, c.from, std::size_t(c.bytes));
    copies_.resize(kept);
  }

 protected:
  host_block_memory(std::size_t states, std::size_t shared)
      : shared_(new(alignment) char[states + shared]), states_(shared_ + shared),
        bytes_(states + shared) {}
  host_block_memory(host_block_memory const&) = delete;
  host_block_memory& operator=(host_block_memory const&) = delete;
  ~host_block_memory() { ::operator delete[](shared_, alignment); }

  /// Nothing has been written to registers and shared memory, which is NaN for floats.
  void forget() {
    std::memset(shared_, 0xff, bytes_);
    copies_.clear();
    committed_ = 0;
  }

  static constexpr std::align_val_t alignment{1024};
  char *const shared_, *const states_;  // the states of all threads, behind what they share

 private:
  struct later {
    void* to;
    void const* from;  // null: zeros
    int bytes, group;
  };
  std::size_t const bytes_;
  std::vector<later> copies_;
  int committed_ = 0;
};

/// needs: Body::state and Body::shared are trivial: plain memory
template <class Body>
class host_block : public host_block_memory {
 public:
  using state = typename Body::state;
  using shared_type = typename Body::shared;
  static_assert(std::is_trivially_copyable_v<state> && std::is_trivially_destructible_v<state>);
  static_assert(std::is_trivially_copyable_v<shared_type> &&
                std::is_trivially_destructible_v<shared_type>);
  static_assert(Body::threads % warp_size == 0);

  explicit host_block(thread_order order = thread_order::ascending)
      : host_block_memory(sizeof(state) * Body::threads, padded(sizeof(shared_type))),
        order_(order) {}

  /// A new block begins.
  void begin(extent index) {
    index_ = index;
    forget();
  }

  extent position() const { return index_; }
  shared_type& shared() const { return *reinterpret_cast<shared_type*>(shared_); }

  template <class F>
  void phase(F f) {
    part(f);
  }
  template <class F>
  void part(F f) {
    for (int i = 0; i < Body::threads; ++i) {
      int const thread = order_ == thread_order::ascending    ? i
                         : order_ == thread_order::descending ? Body::threads - 1 - i
                                                              : (i * 37 + 11) % Body::threads;
      f(thread, of(thread));
    }
  }

  /// For atoms: f(first thread) for every warp, and the state of any thread.
  template <class F>
  void together(F f) {
    for (int first = 0; first < Body::threads; first += warp_size) f(first);
  }
  state& of(int thread) { return reinterpret_cast<state*>(states_)[thread]; }

 private:
  static constexpr std::size_t padded(std::size_t bytes) {
    std::size_t const step = std::size_t(alignment);
    return (bytes + step - 1) / step * step;
  }

  extent index_ = 0;
  thread_order order_;
};

/// Runs n blocks of a kernel, one after the other, from the last to the first if threads run so.
template <class Body, class Arguments>
void run_blocks(extent n, Arguments const& a, thread_order order) {
  host_block<Body> block(order);
  for (extent i = 0; i < n; ++i) {
    block.begin(order == thread_order::descending ? n - 1 - i : i);
    Body::run(block, a);
  }
}
template <class Body>
void run_on_host(arguments const& a, thread_order order = thread_order::ascending) {
  run_blocks<Body>(Body::blocks, a, order);
}

/// The same for a kernel with arguments of its own, which decide how many blocks it has.
template <class Body>
  requires requires { typename Body::arguments; }
void run_on_host(typename Body::arguments const& a, thread_order order = thread_order::ascending) {
  run_blocks<Body>(Body::blocks(a), a, order);
}

}  // namespace pp::cuda
