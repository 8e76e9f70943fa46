// error: (#error )?"?pipe needs CUDA 12.4 or newer"?
// compilers: g++ clang++
// SPDX-License-Identifier: BSL-1.0
//
// The compiler of CUDA says its version in two macros.
#ifndef PIPE_EXPECT_OK
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 3
#endif

#include <pipe/pipe.hpp>
