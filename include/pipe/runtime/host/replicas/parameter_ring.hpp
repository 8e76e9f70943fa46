// SPDX-License-Identifier: BSL-1.0
//
// A ring of memory for divided parameters or gradients, which are whole only while they are needed:
// gradients until replicas have added them up, parameters for the launches that read them.
#pragma once

#include <pipe/base/heap_array.hpp>

namespace pp::detail {

/// The parameters in a ring, by number, first in, first out. Each parameter is contiguous.
///
/// law: the parameters of any two layers fit, so those of one layer fit whatever layer came before:
///      see arena_facts::ring_bytes
class parameter_ring {
 public:
  [[gnu::cold]] void assemble(char* memory, long bytes, long parameters) {
    memory_ = memory, bytes_ = bytes;
    entries_ = heap_array<entry>(parameters + 1);
    at_ = heap_array<char*>(parameters);
  }
  void clear() {
    while (!is_empty()) drop_first();
  }
  bool is_empty() const { return first_ == end_; }
  /// The parameter that came first.
  ///
  /// needs: !is_empty()
  int first() const { return entries_[first_].of; }
  void drop_first() {
    at_[first()] = nullptr;
    first_ = after(first_);
  }

  /// A parameter's memory; null if the parameter is not in the ring.
  char* find(int parameter) const { return at_[parameter]; }
  /// Memory for one more parameter; null if earlier parameters must leave first.
  ///
  /// needs: the parameter is not in the ring
  char* take(int parameter, long bytes) {
    if (is_empty()) return put(parameter, 0, bytes);
    entry const& last = entries_[before(end_)];
    long const from = entries_[first_].begin;
    if (last.begin < from)
      return last.end + bytes <= from ? put(parameter, last.end, bytes) : nullptr;
    if (last.end + bytes <= bytes_) return put(parameter, last.end, bytes);
    return bytes <= from ? put(parameter, 0, bytes) : nullptr;
  }

 private:
  struct entry {
    int of = 0;
    long begin = 0, end = 0;
  };
  long after(long i) const { return i + 1 < entries_.size() ? i + 1 : 0; }
  long before(long i) const { return i > 0 ? i - 1 : entries_.size() - 1; }
  char* put(int parameter, long begin, long bytes) {
    if (begin + bytes > bytes_) return nullptr;
    entries_[end_] = {parameter, begin, begin + bytes};
    end_ = after(end_);
    return at_[parameter] = memory_ + begin;
  }

  char* memory_ = nullptr;
  long bytes_ = 0;
  heap_array<entry> entries_;
  heap_array<char*> at_;  // by parameter; null: it is not there
  long first_ = 0, end_ = 0;
};

}  // namespace pp::detail
