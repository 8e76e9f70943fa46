// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/kept_text.hpp.

namespace pp::detail {

PIPE_DEFINED kept_text::kept_text(kept_text&& other) noexcept
    : begin_(other.begin_), size_(other.size_) {
  other.begin_ = nullptr;
  other.size_ = 0;
}
PIPE_DEFINED kept_text& kept_text::operator=(kept_text other) noexcept {
  char* const begin = begin_;
  begin_ = other.begin_;
  other.begin_ = begin;
  size_ = other.size_;
  return *this;
}
PIPE_DEFINED PIPE_ONE_COPY void kept_text::keep(std::string_view text) {
  if (text.empty()) return;
  begin_ = static_cast<char*>(::operator new(text.size() + 1));
  size_ = text.size();
  std::memcpy(begin_, text.data(), size_);
  begin_[size_] = 0;
}
PIPE_DEFINED PIPE_ONE_COPY bool kept_text::is_equal(std::string_view a, std::string_view b) {
  return a == b;
}

}  // namespace pp::detail
