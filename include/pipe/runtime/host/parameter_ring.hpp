// SPDX-License-Identifier: BSL-1.0
//
// A ring of memory for what is whole only while it is needed: gradients until replicas have added
// them up, parameters for the launches that read them.
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// Parameters in a ring, first in, first out. Each is contiguous.
///
/// law: two layers' parameters fit, or one layer's whatever came before it: see
///      arena_facts::ring_bytes
class parameter_ring {
 public:
  /// most: the most parameters that are in it at once
  [[gnu::cold]] void assemble(char* memory, long bytes, long most) {
    memory_ = memory, bytes_ = bytes;
    entries_ = heap_array<entry>(most + 1);
  }
  void clear() { first_ = end_ = 0; }
  bool is_empty() const { return first_ == end_; }
  /// The parameter that came first.
  ///
  /// needs: !is_empty()
  parameter_place const& first() const { return *entries_[first_].of; }
  void drop_first() { first_ = after(first_); }

  /// A parameter's memory, or null: it is not in the ring.
  char* find(parameter_place const& p) const {
    for (long i = first_; i != end_; i = after(i))
      if (entries_[i].of == &p) return memory_ + entries_[i].begin;
    return nullptr;
  }
  /// Memory for one more parameter, or null: earlier ones must leave.
  char* take(parameter_place const& p, long bytes) {
    if (is_empty()) return put(p, 0, bytes);
    entry const& last = entries_[before(end_)];
    long const from = entries_[first_].begin;
    if (last.begin < from) return last.end + bytes <= from ? put(p, last.end, bytes) : nullptr;
    if (last.end + bytes <= bytes_) return put(p, last.end, bytes);
    return bytes <= from ? put(p, 0, bytes) : nullptr;
  }

 private:
  struct entry {
    parameter_place const* of = nullptr;
    long begin = 0, end = 0;
  };
  long after(long i) const { return i + 1 < entries_.size() ? i + 1 : 0; }
  long before(long i) const { return i > 0 ? i - 1 : entries_.size() - 1; }
  char* put(parameter_place const& p, long begin, long bytes) {
    if (begin + bytes > bytes_ || after(end_) == first_) return nullptr;
    entries_[end_] = {&p, begin, begin + bytes};
    end_ = after(end_);
    return memory_ + begin;
  }

  char* memory_ = nullptr;
  long bytes_ = 0;
  heap_array<entry> entries_;
  long first_ = 0, end_ = 0;
};

}  // namespace pp::detail
