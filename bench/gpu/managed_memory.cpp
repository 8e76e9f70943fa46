// SPDX-License-Identifier: BSL-1.0
//
// All memory of a program is memory that the device can reach: tests of kernel bodies run on it as
// they are. Nothing is given back, as such a program is soon over. It has a limit: managed memory
// beyond the device's own can hang it, and with it all that it runs.
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

#include <cuda_runtime.h>

namespace {

constexpr std::size_t slab = std::size_t(256) << 20, alignment = 256, limit = std::size_t(16) << 30;

void* take(std::size_t bytes) {
  static char* next = nullptr;
  static std::size_t left = 0, total = 0;
  bytes = (bytes + alignment - 1) / alignment * alignment + alignment * (bytes == 0);
  if (bytes > left) {
    left = bytes > slab ? bytes : slab;
    if (left > limit - total) {
      std::fprintf(stderr, "more than %zu GiB of managed memory\n", limit >> 30);
      std::_Exit(3);
    }
    total += left;
    void* memory = nullptr;
    if (cudaMallocManaged(&memory, left) != cudaSuccess)
      memory = std::aligned_alloc(alignment, left);  // no device
    if (memory == nullptr) throw std::bad_alloc();
    next = static_cast<char*>(memory);
  }
  void* const taken = next;
  next += bytes;
  left -= bytes;
  return taken;
}

}  // namespace

void* operator new(std::size_t bytes) { return take(bytes); }
void* operator new(std::size_t bytes, std::align_val_t) { return take(bytes); }
void operator delete(void*) noexcept {}
void operator delete(void*, std::size_t) noexcept {}
void operator delete(void*, std::align_val_t) noexcept {}
void operator delete(void*, std::size_t, std::align_val_t) noexcept {}
