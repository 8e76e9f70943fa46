// SPDX-License-Identifier: BSL-1.0
//
// A rank's memory: one allocation of exactly the planned size, made and cleared by the rank's own
// thread, so that the pages are on the NUMA node of this thread. Large arenas request huge pages: a
// kernel that streams through many megabytes otherwise waits for page tables, and hardware
// prefetchers stop at page boundaries.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>

namespace pp::detail {

/// Owner of zeroed, aligned memory. Movable, not copyable.
class arena {
 public:
  arena() = default;
  /// Allocates `bytes` zeros.
  ///
  /// throws: std::bad_alloc
  explicit arena(long bytes) : bytes_(bytes) {
    // Not aligned operator new, which rounds the size up to a multiple of the alignment.
    void* p = nullptr;
    if (posix_memalign(&p, std::size_t(bytes >= huge_page ? huge_page : alignment),
                       std::size_t(bytes)) != 0)
      throw std::bad_alloc();
    data_ = static_cast<char*>(p);
#if defined(__linux__)
    // Advice only; a refusal is ignored. The incomplete last page is excluded, since a huge page
    // there would exceed the planned size.
    if (bytes >= huge_page)
      madvise(data_, std::size_t(bytes / huge_page * huge_page), MADV_HUGEPAGE);
#endif
    std::memset(data_, 0, std::size_t(bytes));
  }
  /// Takes the memory; addresses into it stay valid.
  arena(arena&& other) noexcept : bytes_(other.bytes_), data_(other.data_) {
    other.bytes_ = 0;
    other.data_ = nullptr;
  }
  arena& operator=(arena&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~arena() { std::free(data_); }

  char* data() const { return data_; }
  long bytes() const { return bytes_; }

 private:
  /// Bytes of a huge page of x86-64; arenas below that have ordinary pages.
  static constexpr long huge_page = 2L << 20;

  long bytes_ = 0;
  char* data_ = nullptr;
};

}  // namespace pp::detail
