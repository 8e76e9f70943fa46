// SPDX-License-Identifier: BSL-1.0
//
// PIPE_TESTS_SANITIZED is defined under AddressSanitizer and ThreadSanitizer, which take malloc for
// themselves.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define PIPE_TESTS_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PIPE_TESTS_SANITIZED 1
#endif
