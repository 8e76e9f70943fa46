// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/extents.hpp.

namespace pp::detail {

PIPE_DEFINED void extents::push_back(long extent) {
  if (size_ < most) extents_[size_] = extent;
  ++size_;
}
PIPE_DEFINED void extents::push_front(long extent) {
  extents const rest = *this;
  *this = {extent};
  for (long const other : rest) push_back(other);
}
PIPE_DEFINED PIPE_ONE_COPY void extents::assign(long const* from, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) push_back(from[i]);
}

}  // namespace pp::detail
