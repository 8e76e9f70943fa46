// SPDX-License-Identifier: BSL-1.0
//
// The order of some items, by index. One sort serves all types of items: <algorithm> is a tenth of
// the compile time of a program's headers, and each std::sort two kilobytes of code.
#pragma once

#include <cstddef>
#include <string_view>

#include <pipe/base/function_ref.hpp>
#include <pipe/io/row_list.hpp>

namespace pp::detail {

/// A question about two items, by index.
using before_ref = function_ref<bool(std::size_t, std::size_t)>;

/// The indices of `n` items in order, by merging runs of twice the length each time.
[[gnu::cold]] PIPE_ONE_COPY inline row_list<std::size_t> merge_sorted(std::size_t n,
                                                                      before_ref before) {
  row_list<std::size_t> order(n), merged(n);
  for (std::size_t i = 0; i < n; ++i) order[i] = i;
  for (std::size_t run = 1; run < n; run *= 2) {
    for (std::size_t begin = 0; begin < n; begin += 2 * run) {
      std::size_t const middle = begin + run < n ? begin + run : n,
                        end = middle + run < n ? middle + run : n;
      std::size_t left = begin, right = middle;
      for (std::size_t to = begin; to < end; ++to)
        merged[to] = left < middle && (right == end || !before(order[right], order[left]))
                         ? order[left++]
                         : order[right++];
    }
    order.swap(merged);
  }
  return order;
}

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
  [[gnu::cold]] void sort() {
    order_ = sorted(names_.size(), [this](std::size_t i, std::size_t k) {
      return names_[i].compare(names_[k]) < 0;
    });
  }
  /// The number of a name, the first if it was added several times; -1 if there is none.
  [[gnu::cold]] PIPE_ONE_COPY long find(std::string_view name) const {
    std::size_t begin = 0, end = order_.size();
    while (begin < end) {
      std::size_t const middle = (begin + end) / 2;
      if (names_[order_[middle]].compare(name) < 0)
        begin = middle + 1;
      else
        end = middle;
    }
    return begin < order_.size() && names_[order_[begin]] == name ? long(order_[begin]) : -1;
  }
  /// Whether a name was added before as another number.
  [[gnu::cold]] bool repeats(std::size_t i) const { return find(names_[i]) != long(i); }
  /// The numbers in the order of the names' bytes.
  row_list<std::size_t> const& order() const { return order_; }
  std::size_t size() const { return names_.size(); }
  std::string_view operator[](std::size_t i) const { return names_[i]; }

 private:
  row_list<std::string_view> names_;
  row_list<std::size_t> order_;
};

}  // namespace pp::detail
