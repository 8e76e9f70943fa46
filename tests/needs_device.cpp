// SPDX-License-Identifier: BSL-1.0
//
// Linked into executables of .cu tests: without a CUDA device the process ends before any test, with the code that ctest
// reads as "skipped".
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime_api.h>

namespace {

bool const has_device = [] {
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::puts("skipped: there is no CUDA device");
    std::exit(77);
  }
  return true;
}();

}  // namespace
