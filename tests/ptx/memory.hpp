// SPDX-License-Identifier: BSL-1.0
//
// What a device remembers. Global memory is the host's own, in allocations that an access must lie
// within; the shared memory of a block knows of each byte who wrote and who read it since the last
// barrier.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program.hpp"

namespace ptx {

/// Generic addresses of a block's shared memory and of a thread's local memory begin here; all
/// others are global.
inline constexpr std::uint64_t parameter_window = std::uint64_t(1) << 59,
                               shared_window = std::uint64_t(1) << 60,
                               local_window = std::uint64_t(1) << 61;

class global_memory {
 public:
  /// Numbers in it are NaN; or pages that were never touched, which cost no memory.
  void* allocate(std::size_t bytes, bool fill = true);
  /// False if nothing begins there.
  bool release(void* p);
  /// Whether [at, at + bytes) lies in one allocation.
  bool holds(std::uint64_t at, std::size_t bytes) const {
    if (at >= first_ && at <= end_ && bytes <= end_ - at) return true;
    return look_up(at, bytes);
  }

 private:
  bool look_up(std::uint64_t at, std::size_t bytes) const;
  std::map<std::uint64_t, std::size_t> allocations_;
  mutable std::uint64_t first_ = 0, end_ = 0;  // the allocation that was asked for last
};

/// The threads of a block at one moment: barriers that it passed, and bar.warp.sync that the
/// thread's warp passed.
struct moment {
  std::uint32_t barriers = 0, meetings = 0;
  std::uint32_t time = 0;               // see async.hpp
  std::uint32_t const* seen = nullptr;  // of each warp: until when its accesses come before this
};
/// TMA, among those that write shared memory.
inline constexpr int tma_thread = 1024, tma = tma_thread / warp_size;

/// Shared memory, of one block after the other. Of each byte: whether the block ever wrote it,
/// whether a copy to it is under way, its last writer and its last reader. Barriers are counted on
/// from block to block, so that what an earlier one did is known as such.
class shared_memory {
 public:
  /// For a block that begins after so many barriers.
  void begin(std::size_t bytes, std::uint32_t barriers);

  /// Whether the block wrote all of them.
  bool is_written(std::size_t at, std::size_t bytes) const;
  /// Throws error for a byte outside, written by another thread since the last barrier, or under
  /// way.
  unsigned char const* read(std::size_t at, std::size_t bytes, int thread, moment when);
  /// The same, of what is read in no thread's order.
  void check_read(std::size_t at, std::size_t bytes, int thread, moment when);
  /// Throws error for a byte outside, read or written by another thread since the last barrier, or
  /// under way.
  unsigned char* write(std::size_t at, std::size_t bytes, int thread, moment when);
  /// As if the block had never written them.
  void forget(std::size_t at, std::size_t bytes) {
    each_byte(at, bytes, [](knowledge& k, std::size_t) { k.writer = k.updater = nobody; });
  }
  /// To be read and written at once: the same, but others may have done so, too.
  unsigned char* update(std::size_t at, std::size_t bytes, int thread, moment when);
  /// The bytes belong to a copy until it lands.
  void begin_copy(std::size_t at, std::size_t bytes, int thread, moment when);
  unsigned char* end_copy(std::size_t at, std::size_t bytes, int thread, moment when);

  // ---- what is not an instruction of a thread: see async.hpp ----

  /// When a byte was stored by a thread, and by which warp; false if it was not.
  bool is_stored(std::size_t at, int& warp, std::uint32_t& time) const {
    knowledge const& k = known_[at];
    if (k.writer == nobody || k.writer >= tma_thread || k.written.barriers < begun_ || k.is_copy)
      return false;
    warp = warp_of(k.writer), time = k.written.time;
    return true;
  }
  /// Products under way, one more or less, may still read these bytes.
  void multiply_later(std::size_t at, std::size_t bytes, int by) {
    require(at, bytes);
    each_byte(at, bytes, [&](knowledge& k, std::size_t) {
      k.products = std::uint16_t((k.read_by >= begun_ ? k.products : 0) + by);
      k.read_by = begun_;
    });
  }
  bool is_multiplied(std::size_t at) const {
    return known_[at].read_by >= begun_ && known_[at].products != 0;
  }
  /// As they are now.
  unsigned char const* bytes_at(std::size_t at) const { return bytes_.data() + at; }

 private:
  static constexpr int nobody = -1, several_warps = -1000;
  /// Who read, or wrote by atomic operations: a thread, several of one warp, or several warps.
  static constexpr int several_of(int warp) { return -2 - warp; }
  static constexpr int warp_of(int who) { return who >= 0 ? who / warp_size : -2 - who; }
  struct knowledge {
    std::int16_t writer = nobody, reader = nobody, updater = nobody;
    bool is_copy = false;        // under way, if this block began it
    std::uint16_t products = 0;  // under way, if this block began them
    std::uint32_t read_by = 0;
    struct stamp {
      std::uint32_t barriers = 0, meetings = 0, time = 0;
      stamp() = default;
      stamp(moment const& m) : barriers(m.barriers), meetings(m.meetings), time(m.time) {}
    } written, read, updated;
  };
  bool is_under_way(knowledge const& k) const { return k.is_copy && k.written.barriers >= begun_; }
  template <class F>
  void each_byte(std::size_t at, std::size_t bytes, F f) {
    for (std::size_t i = at; i < at + bytes; ++i) f(known_[i], i);
  }
  void require(std::size_t at, std::size_t bytes) const;
  static std::int16_t joined(int who, knowledge::stamp then, int thread, moment when);
  static bool clashes(int one, knowledge::stamp then, int thread, moment when);
  std::size_t size_ = 0;
  std::uint32_t begun_ = 0;
  std::vector<unsigned char> bytes_;
  std::vector<knowledge> known_;
};

}  // namespace ptx
