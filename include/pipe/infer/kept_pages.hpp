// SPDX-License-Identifier: BSL-1.0
//
// The keys and values that a decoder keeps, in pages of consecutive positions. Texts that begin
// alike share the pages of their beginning, until one of them writes to a page.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include <pipe/base/bytes.hpp>
#include <pipe/base/heap_array.hpp>

namespace pp::detail {

/// The first element of `room` at a multiple of `alignment` bytes.
template <class T>
T* first_aligned(heap_array<T>& room) {
  long const over = long(reinterpret_cast<std::uintptr_t>(room.begin()) % alignment);
  return room.begin() + (align_up(over) - over) / long(sizeof(T));
}

/// Pages of all texts of a decoder. A page has the keys and values of all attentions of a model for
/// `positions` consecutive positions; a page that no text reads is used again.
///
/// law: a page that several texts read is not written to
template <class T>
class kept_pages {
 public:
  kept_pages() = default;
  /// numbers: of a page. `at_once`: pages that are allocated here; others are when they are needed.
  [[gnu::cold]] kept_pages(long numbers, int positions, int context, int texts, int at_once)
      : numbers_(padded<T>(numbers)), positions_(positions),
        of_text_((context + positions - 1) / positions), pages_(long(of_text_) * texts),
        ids_(long(of_text_) * texts) {
    for (int& id : ids_) id = -1;
    for (int i = 0; i < at_once; ++i) allocate();
  }

  /// The pages of a text, by position / positions; null where there is none.
  T* const* of(int text) const { return pages_.begin() + long(text) * of_text_; }
  /// Makes positions [from, end) of a text writable, whose positions before `from` it keeps.
  ///
  /// throws: std::bad_alloc; the texts are as before then
  [[gnu::cold]] void make_writable(int text, int from, int end) {
    for (int p = from / positions_; p * positions_ < end; ++p) {
      long const at = long(text) * of_text_ + p;
      if (ids_[at] >= 0 && readers_[std::size_t(ids_[at])] == 1) continue;
      int const id = free_page();
      T* const page = begin_of(id);
      if (ids_[at] >= 0 && p * positions_ < from)
        std::memcpy(page, pages_[at], sizeof(T) * std::size_t(numbers_));
      release(at);
      take(at, id);
    }
  }
  /// Drops the positions of a text from `position` on.
  [[gnu::cold]] void keep_first(int text, int position) {
    for (int p = (position + positions_ - 1) / positions_; p < of_text_; ++p)
      release(long(text) * of_text_ + p);
  }
  /// Lets text `to` read the pages of text `from`.
  [[gnu::cold]] void share(int from, int to) {
    for (int p = 0; p < of_text_; ++p) {
      long const at = long(to) * of_text_ + p;
      int const id = ids_[long(from) * of_text_ + p];
      release(at);
      if (id >= 0) take(at, id);
    }
  }
  /// Bytes allocated for pages.
  long bytes() const {
    long sum = 0;
    for (auto const& m : memory_) sum += m.size() * long(sizeof(T));
    return sum;
  }

 private:
  T* begin_of(int id) { return first_aligned(memory_[std::size_t(id)]); }
  void allocate() {
    readers_.push_back(0);
    try {
      memory_.emplace_back(numbers_ + alignment / long(sizeof(T)));
    } catch (...) {
      readers_.pop_back();
      throw;
    }
  }
  int free_page() {
    for (std::size_t id = 0; id < readers_.size(); ++id)
      if (readers_[id] == 0) return int(id);
    allocate();
    return int(readers_.size()) - 1;
  }
  void take(long at, int id) {
    ids_[at] = id;
    pages_[at] = begin_of(id);
    ++readers_[std::size_t(id)];
  }
  void release(long at) {
    if (ids_[at] < 0) return;
    --readers_[std::size_t(ids_[at])];
    ids_[at] = -1;
    pages_[at] = nullptr;
  }

  long numbers_ = 0;
  int positions_ = 1, of_text_ = 0;
  heap_array<T*> pages_;               // by text and page
  heap_array<int> ids_;                // of these pages; -1: none
  std::vector<heap_array<T>> memory_;  // by id
  std::vector<int> readers_;           // by id: texts
};

}  // namespace pp::detail
