// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/row_list.hpp.

namespace pp::detail {

PIPE_DEFINED row_memory::row_memory(row_memory&& other) noexcept
    : rows_(other.rows_), size_(other.size_), room_(other.room_) {
  other.rows_ = nullptr;
  other.size_ = other.room_ = 0;
}
PIPE_DEFINED row_memory::~row_memory() { ::operator delete(rows_); }
PIPE_DEFINED PIPE_ONE_COPY void row_memory::swap(row_memory& other) noexcept {
  void* const rows = rows_;
  std::size_t const size = size_, room = room_;
  rows_ = other.rows_, size_ = other.size_, room_ = other.room_;
  other.rows_ = rows, other.size_ = size, other.room_ = room;
}
PIPE_DEFINED PIPE_ONE_COPY void row_memory::take_room(std::size_t count, std::size_t bytes) {
  if (count <= room_) return;
  void* const rows = ::operator new(count * bytes);
  if (size_ > 0) std::memcpy(rows, rows_, size_ * bytes);
  ::operator delete(rows_);
  rows_ = rows;
  room_ = count;
}
PIPE_DEFINED PIPE_ONE_COPY void* row_memory::next_place(std::size_t bytes) {
  if (size_ == room_) take_room(2 * size_ + 4, bytes);
  return static_cast<char*>(rows_) + size_ * bytes;
}

}  // namespace pp::detail
