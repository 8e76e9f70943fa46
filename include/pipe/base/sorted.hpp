// SPDX-License-Identifier: BSL-1.0
//
// The order of some items, by index. One sort serves all types of items: <algorithm> is a tenth of
// the compile time of a program's headers, and each std::sort two kilobytes of code.
#pragma once

#include <cstddef>
#include <vector>

namespace pp::detail {

/// A question about two items, by index.
class before_ref {
 public:
  template <class Before>
  explicit before_ref(Before const& before)
      : of_(&before), ask_([](void const* of, std::size_t i, std::size_t k) {
          return bool((*static_cast<Before const*>(of))(i, k));
        }) {}
  bool operator()(std::size_t i, std::size_t k) const { return ask_(of_, i, k); }

 private:
  void const* of_;
  bool (*ask_)(void const*, std::size_t, std::size_t);
};

/// Sorts indices by merging runs of twice the length each time.
[[gnu::noinline]] inline void merge_sort(std::vector<std::size_t>& order, before_ref before) {
  std::size_t const n = order.size();
  std::vector<std::size_t> merged(n);
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
}

/// The indices of `count` items in order: before(i, k) says whether item i comes before item k.
///
/// law:  equal items keep their order
/// cost: n log n questions, in the worst case, too
template <class Before>
std::vector<std::size_t> sorted(std::size_t count, Before const& before) {
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  merge_sort(order, before_ref(before));
  return order;
}

}  // namespace pp::detail
