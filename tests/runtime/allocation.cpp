// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <cstddef>
#include <atomic>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "runtime/allocation.hpp"

#if PIPE_TESTS_COUNT_ALLOCATIONS

namespace {
std::atomic<long> calls{0}, first_bad{-1}, last_bad{-1};
std::atomic<long> bytes_asked{0}, large_asked{0};
std::atomic<long> sizes[64];

/// Counts a call; whether it has to fail, with errno as the C library sets it.
bool fails(std::size_t size) {
  long const bytes = long(size), call = calls++;
  bytes_asked += bytes;
  if (bytes >= asked::large)
    if (long const at = large_asked++; at < 64) sizes[at] = bytes;
  bool const is_bad = call >= first_bad && call <= last_bad;
  if (is_bad) errno = ENOMEM;
  return is_bad;
}
}  // namespace

long allocations() { return calls.load(); }
void count_bytes() { bytes_asked = large_asked = 0; }
asked counted_bytes() {
  asked a;
  a.bytes = bytes_asked;
  a.count = large_asked;
  for (int i = 0; i < 64; ++i) a.of_size[i] = i < a.count ? sizes[i].load() : 0;
  return a;
}

void fail_allocations(long good, long bad) {
  first_bad = calls + good;
  last_bad = good < 0 ? -1 : calls + good + bad - 1;
}

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) { return fails(bytes) ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) {
  return fails(count * bytes) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  return fails(bytes) ? nullptr : __libc_realloc(old, bytes);
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  return fails(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails(bytes) ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  *result = fails(bytes) ? nullptr : __libc_memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
/// Of the program and its libraries; what the C library maps for its own use (its heap, stacks of
/// threads) it does not call by name.
void* mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  if (fails(bytes)) return MAP_FAILED;
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}
}

#else

long allocations() { return 0; }
void fail_allocations(long, long) {}
void count_bytes() {}
asked counted_bytes() { return {}; }

#endif
