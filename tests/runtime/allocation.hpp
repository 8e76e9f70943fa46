// SPDX-License-Identifier: BSL-1.0
//
// Counts allocations of the whole process, operator new included, by standing in front of the C
// library's malloc.
#pragma once

#include "sanitized.hpp"

/// 1 where allocations can be counted; a sanitizer has taken malloc for itself.
#if defined(__GLIBC__) && !defined(PIPE_TESTS_SANITIZED)
#define PIPE_TESTS_COUNT_ALLOCATIONS 1
#else
#define PIPE_TESTS_COUNT_ALLOCATIONS 0
#endif

/// Calls of malloc and its kin so far, by any thread.
long allocations();

/// From now on `good` calls succeed, then `bad` fail, then all succeed again. good < 0: all
/// succeed.
void fail_allocations(long good, long bad);
/// What was asked for since the last call of count_bytes(), by any thread: of malloc and its kin
/// and of mmap, however soon it was given back.
struct asked {
  static constexpr long large = 8 * 1024;
  long bytes = 0;    ///< of all requests
  long count = 0;    ///< of large requests
  long of_size[64];  ///< the large ones, in any order
};
void count_bytes();
asked counted_bytes();
