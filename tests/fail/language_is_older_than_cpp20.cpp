// error: (#error )?"?pipe needs C\+\+20: compile with -std=c\+\+20"?
// compilers: g++ clang++
// SPDX-License-Identifier: BSL-1.0
//
// A compiler that was not asked for C++20 says so in a macro.
#ifndef PIPE_EXPECT_OK
#undef __cplusplus
#define __cplusplus 201703L
#endif

#include <pipe/base/config.hpp>
