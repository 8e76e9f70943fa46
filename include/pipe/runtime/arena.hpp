// SPDX-License-Identifier: BSL-1.0
//
// A rank's memory: one allocation, exactly as large as planned, made by the rank's own thread so that the pages are near it. A
// large one asks for huge pages: a kernel that walks through many megabytes otherwise waits for page tables, and hardware
// prefetches no further than a page.
#pragma once

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <pipe/base/bytes.hpp>

namespace pp {

class arena {
 public:
  arena() = default;
  explicit arena(long bytes)
      : bytes_(bytes), data_(static_cast<char*>(::operator new(std::size_t(bytes), begins_at()))) {
#if defined(__linux__)
    if (bytes >= huge_page) madvise(data_, std::size_t(bytes), MADV_HUGEPAGE);  // may be refused, which changes nothing
#endif
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
    if (data_ != nullptr) ::operator delete(data_, begins_at());
  }

  char* data() const { return data_; }
  long bytes() const { return bytes_; }

 private:
  static constexpr long huge_page = 2L << 20;
  std::align_val_t begins_at() const { return std::align_val_t(bytes_ >= huge_page ? huge_page : alignment); }

  long bytes_ = 0;
  char* data_ = nullptr;
};

}  // namespace pp
