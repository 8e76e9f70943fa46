// SPDX-License-Identifier: BSL-1.0
#include "memory.hpp"

#include <cstring>
#include <new>

namespace ptx {

void* global_memory::allocate(std::size_t bytes, bool fill) {
  void* const p = ::operator new(bytes > 0 ? bytes : 1, std::align_val_t(256));
  if (fill) std::memset(p, 0xff, bytes);  // numbers that nobody has written are NaN
  allocations_[reinterpret_cast<std::uint64_t>(p)] = bytes;
  return p;
}

bool global_memory::release(void* p) {
  if (p == nullptr) return true;
  if (allocations_.erase(reinterpret_cast<std::uint64_t>(p)) == 0) return false;
  ::operator delete(p, std::align_val_t(256));
  first_ = end_ = 0;
  return true;
}

bool global_memory::look_up(std::uint64_t at, std::size_t bytes) const {
  auto const next = allocations_.upper_bound(at);
  if (next == allocations_.begin()) return false;
  auto const& [first, size] = *std::prev(next);
  if (at - first > size || bytes > size - (at - first)) return false;
  first_ = first, end_ = first + size;
  return true;
}

void shared_memory::begin(std::size_t bytes, std::uint32_t barriers) {
  size_ = bytes;
  begun_ = barriers;
  if (bytes > bytes_.size()) {
    bytes_.resize(bytes);
    known_.resize(bytes);
  }
}

void shared_memory::require(std::size_t at, std::size_t bytes) const {
  if (at > size_ || bytes > size_ - at)
    throw error("shared bytes " + std::to_string(at) + " to " + std::to_string(at + bytes) +
                " of " + std::to_string(size_));
}

/// Whether two accesses of one byte, of which one writes, have no order: threads of a warp have one
/// when the warp came together between.
bool shared_memory::clashes(int one, knowledge::stamp then, int thread, moment when) {
  if (one == nobody || one == thread || then.barriers != when.barriers) return false;
  if (one == several_warps) {
    for (int w = 0; w < tma; ++w)
      if (w != warp_of(thread) && when.seen[w] < then.time) return true;
    return false;
  }
  if (warp_of(one) == warp_of(thread)) return then.meetings == when.meetings;
  return when.seen[warp_of(one)] < then.time;
}

/// One thread more of those that accessed a byte since the last barrier.
std::int16_t shared_memory::joined(int who, knowledge::stamp then, int thread, moment when) {
  bool const fresh = who == nobody || then.barriers != when.barriers;
  return std::int16_t(fresh || who == thread            ? thread
                      : warp_of(who) == warp_of(thread) ? several_of(warp_of(thread))
                                                        : several_warps);
}

bool shared_memory::is_written(std::size_t at, std::size_t bytes) const {
  for (std::size_t i = at; i < at + bytes; ++i)
    if (known_[i].writer == nobody || known_[i].written.barriers < begun_) return false;
  return true;
}

void shared_memory::check_read(std::size_t at, std::size_t bytes, int thread, moment when) {
  require(at, bytes);
  each_byte(at, bytes, [&](knowledge& k, std::size_t i) {
    if (is_under_way(k))
      throw error("shared byte " + std::to_string(i) + " is read before its copy was waited for");
    if (clashes(k.writer, k.written, thread, when) || clashes(k.updater, k.updated, thread, when))
      throw error("shared byte " + std::to_string(i) + " is read by thread " +
                  std::to_string(thread) + " without a barrier after another wrote it");
  });
}

unsigned char const* shared_memory::read(std::size_t at, std::size_t bytes, int thread,
                                         moment when) {
  check_read(at, bytes, thread, when);
  each_byte(at, bytes, [&](knowledge& k, std::size_t) {
    k.reader = joined(k.reader, k.read, thread, when);
    k.read = when;
  });
  return bytes_.data() + at;
}

unsigned char* shared_memory::write(std::size_t at, std::size_t bytes, int thread, moment when) {
  require(at, bytes);
  each_byte(at, bytes, [&](knowledge& k, std::size_t i) {
    if (is_under_way(k))
      throw error("shared byte " + std::to_string(i) +
                  " is written while a copy to it is under way");
    if (clashes(k.writer, k.written, thread, when) || clashes(k.updater, k.updated, thread, when) ||
        clashes(k.reader, k.read, thread, when))
      throw error("shared byte " + std::to_string(i) + " is written by thread " +
                  std::to_string(thread) + " without a barrier after another read or wrote it");
    k.writer = std::int16_t(thread);
    k.is_copy = false;
    k.written = when;
    k.reader = k.updater = nobody;
  });
  return bytes_.data() + at;
}

unsigned char* shared_memory::update(std::size_t at, std::size_t bytes, int thread, moment when) {
  require(at, bytes);
  each_byte(at, bytes, [&](knowledge& k, std::size_t i) {
    if (is_under_way(k))
      throw error("shared byte " + std::to_string(i) +
                  " is updated while a copy to it is under way");
    if (clashes(k.writer, k.written, thread, when) || clashes(k.reader, k.read, thread, when))
      throw error("shared byte " + std::to_string(i) + " is updated by thread " +
                  std::to_string(thread) + " without a barrier after another read or wrote it");
    k.updater = joined(k.updater, k.updated, thread, when);
    k.updated = when;
  });
  return bytes_.data() + at;
}

void shared_memory::begin_copy(std::size_t at, std::size_t bytes, int thread, moment when) {
  write(at, bytes, thread, when);
  each_byte(at, bytes, [](knowledge& k, std::size_t) { k.is_copy = true; });
}

unsigned char* shared_memory::end_copy(std::size_t at, std::size_t bytes, int thread, moment when) {
  each_byte(at, bytes, [&](knowledge& k, std::size_t) {
    k.is_copy = false;
    k.writer = std::int16_t(thread);
    k.written = when;
  });
  return bytes_.data() + at;
}

}  // namespace ptx
