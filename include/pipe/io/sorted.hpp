// SPDX-License-Identifier: BSL-1.0
//
// The order of some items, by index. One sort serves all types of items: <algorithm> is a tenth of
// the compile time of a program's headers, and each std::sort two kilobytes of code.
#pragma once

#include <cstddef>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/io/row_list.hpp>

namespace pp::detail {

/// A question about two items, by index.
using before_ref = function_ref<bool(std::size_t, std::size_t)>;

/// The indices of `n` items in order, by merging runs of twice the length each time.
[[gnu::cold]] row_list<std::size_t> merge_sorted(std::size_t n, before_ref before);

/// The indices of `count` items in order: before(i, k) says whether item i comes before item k.
///
/// law:  equal items keep their order
/// cost: n log n questions, in the worst case, too
template <class Before>
row_list<std::size_t> sorted(std::size_t count, Before const& before) {
  return merge_sorted(count, before_ref(before));
}

/// Names that outlive the index, numbered in the order of add().
class name_index {
 public:
  static constexpr bool moves_by_bytes = true;

  void add(std::string_view name) { names_.push_back(name); }
  /// needs: all names are added; before any question
  [[gnu::cold]] void sort();
  /// The number of a name, the first if it was added several times; -1 if there is none.
  [[gnu::cold]] long find(std::string_view name) const;
  /// Whether a name was added before as another number.
  [[gnu::cold]] bool repeats(std::size_t i) const;
  /// The numbers in the order of the names' bytes.
  row_list<std::size_t> const& order() const { return order_; }
  std::size_t size() const { return names_.size(); }
  std::string_view operator[](std::size_t i) const { return names_[i]; }

 private:
  row_list<std::string_view> names_;
  row_list<std::size_t> order_;
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/sorted.inl>
#endif
