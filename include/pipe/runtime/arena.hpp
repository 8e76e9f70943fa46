// SPDX-License-Identifier: BSL-1.0
//
// A rank's memory: one allocation, exactly as large as planned, made by the rank's own thread so that the pages are near it.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#include <pipe/base/bytes.hpp>

namespace pp {

class arena {
 public:
  arena() = default;
  explicit arena(long bytes)
      : bytes_(bytes), data_(static_cast<char*>(::operator new(std::size_t(bytes), std::align_val_t(alignment)))) {
    std::memset(data_, 0, std::size_t(bytes));
  }
  arena(arena&& other) noexcept : bytes_(other.bytes_), data_(other.data_) {
    other.bytes_ = 0;
    other.data_ = nullptr;
  }
  arena& operator=(arena&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~arena() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t(alignment));
  }

  char* data() const { return data_; }
  long bytes() const { return bytes_; }

 private:
  long bytes_ = 0;
  char* data_ = nullptr;
};

}  // namespace pp
