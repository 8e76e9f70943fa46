// SPDX-License-Identifier: BSL-1.0
#include <cerrno>
#include <cstddef>
#include <atomic>

#include "runtime/allocation.hpp"

#if PIPE_TESTS_COUNT_ALLOCATIONS

namespace {
std::atomic<long> calls{0}, first_bad{-1}, last_bad{-1};

/// Counts a call; whether it has to fail.
bool fails() {
  long const call = calls++;
  return call >= first_bad && call <= last_bad;
}
}  // namespace

long allocations() { return calls.load(); }

void fail_allocations(long good, long bad) {
  first_bad = calls + good;
  last_bad = good < 0 ? -1 : calls + good + bad - 1;
}

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) { return fails() ? nullptr : __libc_malloc(bytes); }
void* calloc(std::size_t count, std::size_t bytes) { return fails() ? nullptr : __libc_calloc(count, bytes); }
void* realloc(void* old, std::size_t bytes) { return fails() ? nullptr : __libc_realloc(old, bytes); }
void* memalign(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return fails() ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  *result = fails() ? nullptr : __libc_memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
}

#else

long allocations() { return 0; }
void fail_allocations(long, long) {}

#endif
