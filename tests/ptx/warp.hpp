// SPDX-License-Identifier: BSL-1.0
//
// A warp that executes a kernel in lockstep: lanes that branch apart go on one path after the
// other, and come together at the branch's join.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "async.hpp"
#include "memory.hpp"
#include "program.hpp"

namespace ptx {

struct dimensions {
  unsigned x = 1, y = 1, z = 1;
};

/// Warps of a block that have stored to global memory, and that have released what the block
/// stored, since the last barrier.
struct handing_on {
  std::uint32_t barriers = 0, stored = 0, released = 0;  // a bit for each warp
};

struct counts;
struct block {
  kernel const& of;
  global_memory const& global;
  unsigned char const* parameters;
  dimensions grid, threads, index;
  shared_memory& shared;
  counts* counted = nullptr;   // where its work is counted
  std::uint32_t barriers = 0;  // that all threads have passed, of this block and those before it
  /// Whether kernels that this one follows may still run when it begins.
  bool is_early = false;
  handing_on handed_on = {};
  async_work work = {};
  /// bar.red: whether a predicate holds for some thread, at one barrier and at the one before it,
  /// whose result some warps have not read yet.
  struct vote {
    std::uint32_t at = 0;
    bool some = false;
  };
  std::array<vote, 2> votes = {};
};

/// A copy from global to shared memory that a lane asked for.
struct copy {
  std::size_t to = 0;
  std::uint64_t from = 0;
  int bytes = 0, from_memory = 0;  // the rest is zeros
  int lane = 0;
  std::uint32_t group = 0;  // how many groups the lane had committed before
};

struct warp {
  /// Lanes that go on together, until `join`, where those of the path below wait; -1: to the end.
  struct path {
    int at = 0;
    lanes active = 0;
    int join = -1;
    bool is_done() const { return active == 0 || at == join; }
  };

  block* in = nullptr;
  int first_thread = 0;
  lanes alive = 0;
  std::vector<path> paths;               // the one that runs is the last
  bool waits = false;                    // at a barrier of the block
  int barrier = 0, barrier_threads = 0;  // which one; threads that it waits for, or 0: all
  bool polls = false;                    // has found a phase of an mbarrier unfinished
  polled_phase polled = {};
  clock seen{};                   // see async.hpp
  std::vector<product> products;  // wgmma that were not waited for
  std::uint32_t product_groups = 0;
  bool has_batch = false;                  // wgmma.fence since the last wait
  bool has_followed = false;               // griddepcontrol.wait has been executed
  instruction const* reduction = nullptr;  // bar.red whose result it has not read
  lanes reduces = 0;
  std::uint32_t meetings = 0;                     // bar.warp.sync that it has passed
  std::vector<unsigned char> registers;           // as the kernel places them
  std::vector<lanes> known;                       // of each register: lanes that wrote it
  std::vector<lanes> known_low;                   // lanes that wrote its lower half alone
  std::vector<unsigned char> local;               // 32 lanes' local memory
  std::vector<copy> copies;                       // not waited for
  std::array<std::uint32_t, warp_size> groups{};  // that each lane committed

  /// At the start of a block: its threads from `first` on.
  void begin(block& b, int first);

  /// Executes until all lanes have left, or the warp waits at a barrier or polls one in vain.
  void run();

  // What functions of instructions do. A value that nobody wrote may be moved and computed with, as
  // compilers do with one that they then do not select: what comes of it is as little known.
  // Nothing may depend on it: no address, no path, no memory, no other lane.

  /// The lanes whose value of an operand is known.
  lanes known_of(operand const& o) const {
    return o.index < 0 ? all_lanes : known[std::size_t(o.index)];
  }
  /// The lanes whose value of an operand's lower half is known.
  lanes known_of_low(operand const& o) const {
    return o.index < 0 ? all_lanes : known[std::size_t(o.index)] | known_low[std::size_t(o.index)];
  }
  /// An operand's values, known or not.
  template <class T>
  T const* look(operand const& o) const {
    unsigned char const* const from = o.index < 0 ? in->of.constants.data() : registers.data();
    return reinterpret_cast<T const*>(from + o.at);
  }
  /// An operand's values, all of them known.
  template <class T>
  T const* read(operand const& o, lanes active) const {
    if ((active & ~known_of(o)) != 0) fail_unknown(o);
    return look<T>(o);
  }
  /// Where active lanes write; `of` are those whose new value is known.
  template <class T>
  T* write(operand const& o, lanes active, lanes of = all_lanes) {
    lanes& k = known[std::size_t(o.index)];
    k = (k & ~active) | (of & active);
    known_low[std::size_t(o.index)] &= ~active;
    return reinterpret_cast<T*>(registers.data() + o.at);
  }
  /// The lanes of `active` for which a predicate holds.
  lanes holds(operand const& o, lanes active) const { return *read<lanes>(o, active) & active; }
  void set(operand const& o, lanes which, lanes active, lanes of = all_lanes) {
    lanes& p = *write<lanes>(o, active, of);
    p = (p & ~active) | (which & active);
  }
  /// A branch to `target`, of active lanes; the others of the path go on, and all meet at `join`.
  void jump(int target, int join, lanes active);
  void leave(lanes active);
  /// Of bar.red: the warp waits, and has the block's result when it goes on.
  void vote_at_barrier(instruction const& i, lanes active, bool vote);
  /// Throws error unless all lanes that are left are here: `what` needs them.
  void require_all(lanes active, char const* what);
  /// Of the instruction executed last.
  int line() const { return in->of.code[std::size_t(paths.back().at - 1)].line; }
  moment now() const { return {in->barriers, meetings, in->work.time, seen.data()}; }
  int number() const { return first_thread / warp_size; }

 private:
  void take_reduction();
  [[noreturn]] void fail_unknown(operand const& o) const;
};

/// Which blocks of a launch run, and where their work is counted: see counts.hpp.
struct sample {
  counts* into = nullptr;
  unsigned blocks = 0;  ///< spread over the grid; 0: all of them
  bool skips = false;   ///< runs none
};

/// Runs a grid, block by block; warps of a block in the order of `order`: up, down (and so are
/// blocks), or as a seed says. is_early: a programmatic dependent launch, in which every warp has
/// to wait for the kernels before it, and must not access global memory until it has.
void launch(kernel const& k, global_memory const& global, dimensions grid, dimensions threads,
            std::size_t shared_bytes, unsigned char const* parameters, int order, sample s = {},
            bool is_early = false);

}  // namespace ptx
