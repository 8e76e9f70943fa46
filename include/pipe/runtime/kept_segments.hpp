// SPDX-License-Identifier: BSL-1.0
//
// Copies of the segments of a mini-batch, for runs that go on while the trainer takes the next one.
#pragma once

#include <cstring>

#include <pipe/backend/segments.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The segments of a mini-batch's micro-batches, in memory that is allocated once.
class kept_segments {
 public:
  /// lists: of a mini-batch, for all axes. rows: the most of a list, of samples of the longest
  /// length
  [[gnu::cold]] void assemble(int lists, long rows) {
    lists_ = heap_array<segment_list>(lists);
    rows_ = rows;
    firsts_ = heap_array<int>(lists * (rows + 1));
    segments_ = heap_array<int>(lists * rows);
    given_ = heap_array<int>(lists * rows);
    places_ = heap_array<long>(lists * rows);
  }
  /// Copies list number `number`, whose rows and segments are at most as planned.
  void keep(int number, segment_list const& from) {
    segment_list& to = lists_[number] = from;
    if (from.first == nullptr) return;  // of an input that is no axis
    to.first = copied(from.first, from.count + 1, firsts_.begin() + number * (rows_ + 1));
    to.segment = copied(from.segment, from.rows, segments_.begin() + number * rows_);
    to.given = copied(from.given, from.count, given_.begin() + number * rows_);
    to.place = copied(from.place, from.count, places_.begin() + number * rows_);
  }
  segment_list const* lists() const { return lists_.begin(); }

 private:
  template <class Item>
  static Item const* copied(Item const* from, long count, Item* to) {
    std::memcpy(to, from, sizeof(Item) * std::size_t(count));
    return to;
  }

  heap_array<segment_list> lists_;
  long rows_ = 0;
  heap_array<int> firsts_, segments_, given_;
  heap_array<long> places_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
