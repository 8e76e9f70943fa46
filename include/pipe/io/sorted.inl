// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/sorted.hpp.

namespace pp::detail {

PIPE_DEFINED PIPE_ONE_COPY row_list<std::size_t> merge_sorted(std::size_t n, before_ref before) {
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
PIPE_DEFINED void name_index::sort() {
  order_ = sorted(names_.size(), [this](std::size_t i, std::size_t k) {
    return names_[i].compare(names_[k]) < 0;
  });
}
PIPE_DEFINED PIPE_ONE_COPY long name_index::find(std::string_view name) const {
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
PIPE_DEFINED bool name_index::repeats(std::size_t i) const { return find(names_[i]) != long(i); }

}  // namespace pp::detail
