// SPDX-License-Identifier: BSL-1.0
//
// Stands in for CUDA's own header, so that the engine for a GPU runs on the CPU. What is put on a stream is done when it is waited for: see
// device/tasks.hpp.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "device/tasks.hpp"

#define __global__

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorNoDevice,
  cudaErrorNoKernelImageForDevice,
  cudaErrorInvalidDeviceFunction
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;

struct cudaDeviceProp {
  char name[64];
  int major, minor;
  std::size_t sharedMemPerBlockOptin;
};

namespace fake_gpu {

/// How often programs called what they are to call seldom or never.
struct counters {
  long timings = 0;                    // cudaEventElapsedTime
  long timed_records = 0;              // cudaEventRecord of an event that keeps a time
  long downloads = 0, downloaded = 0;  // copies to the host, and their bytes
  long pageable = 0;                   // of them asynchronous ones to memory that is not pinned: the caller waits for them
};

struct device : machine {
  int devices = 1;
  std::size_t shared_bytes = 227 * 1024;  // of a block, at most
  std::map<void*, long> memory, pinned;  // what programs have of each, by where it begins
  counters count;
  long calls = 0, failing = -1;  // of calls that can fail while a program runs, and which of them does
  cudaError_t last = cudaSuccess;

  bool is_pinned(void const* p) const {
    for (auto const& [begin, bytes] : pinned)
      if (p >= begin && p < static_cast<char const*>(begin) + bytes) return true;
    return false;
  }
  bool is_idle() const {
    for (stream const* s : streams)
      if (!s->tasks.empty()) return false;
    return true;
  }
  /// Of a call: what it returns. One that fails does nothing.
  cudaError_t answer() { return calls++ == failing ? last = cudaErrorInvalidValue : cudaSuccess; }
  void copies(cudaMemcpyKind kind, std::size_t bytes) {
    if (kind != cudaMemcpyDeviceToHost) return;
    ++count.downloads;
    count.downloaded += long(bytes);
  }
};
inline device gpu;

}  // namespace fake_gpu

using cudaStream_t = fake_gpu::stream*;
using cudaEvent_t = fake_gpu::event*;

inline char const* cudaGetErrorString(cudaError_t e) { return e == cudaErrorNoDevice ? "no device" : "invalid value"; }
inline cudaError_t cudaGetLastError() { return std::exchange(fake_gpu::gpu.last, cudaSuccess); }
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake_gpu::gpu.devices;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {"a CPU", 9, 0, fake_gpu::gpu.shared_bytes};
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) { return cudaSuccess; }
struct cudaFuncAttributes {};
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, void (*)()) { return cudaSuccess; }

inline void* fake_memory(std::map<void*, long>& of, std::size_t bytes) {
  void* const p = ::operator new(bytes, std::align_val_t(256));
  std::memset(p, 0xff, bytes);
  of[p] = long(bytes);
  return p;
}
inline cudaError_t free_fake_memory(std::map<void*, long>& of, void* p) {
  of.erase(p);
  ::operator delete(p, std::align_val_t(256));
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  *p = fake_memory(fake_gpu::gpu.memory, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMallocHost(void** p, std::size_t bytes) {
  *p = fake_memory(fake_gpu::gpu.pinned, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* p) { return free_fake_memory(fake_gpu::gpu.memory, p); }
inline cudaError_t cudaFreeHost(void* p) { return free_fake_memory(fake_gpu::gpu.pinned, p); }
inline cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  std::memset(p, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (fake_gpu::gpu.answer() != cudaSuccess) return cudaErrorInvalidValue;
  fake_gpu::gpu.copies(kind, bytes);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  fake_gpu::gpu.streams.push_back(*s = new fake_gpu::stream);
  return cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t s) {
  std::erase(fake_gpu::gpu.streams, s);
  delete s;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  *e = new fake_gpu::event{flags != cudaEventDisableTiming};
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete e;
  return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) {
  ++fake_gpu::gpu.count.timings;
  *ms = 1;
  return fake_gpu::gpu.answer();
}
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  if (fake_gpu::gpu.answer() != cudaSuccess) return cudaErrorInvalidValue;
  fake_gpu::gpu.count.timed_records += e->is_timed;
  s->tasks.push_back({[e, n = ++e->promised] { e->reached = n; }});
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  if (fake_gpu::gpu.answer() != cudaSuccess) return cudaErrorInvalidValue;
  s->tasks.push_back({{}, e, e->promised});
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t s) {
  if (fake_gpu::gpu.answer() != cudaSuccess) return cudaErrorInvalidValue;
  fake_gpu::gpu.copies(kind, bytes);
  fake_gpu::gpu.count.pageable += kind == cudaMemcpyDeviceToHost && !fake_gpu::gpu.is_pinned(to);
  s->tasks.push_back({[=] { std::memcpy(to, from, bytes); }});
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t s) {
  if (fake_gpu::gpu.answer() != cudaSuccess) return cudaErrorInvalidValue;
  s->tasks.push_back({[=] { std::memset(p, value, bytes); }});
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (fake_gpu::gpu.answer() != cudaSuccess) return cudaErrorInvalidValue;
  fake_gpu::gpu.finish(s);
  return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (fake_gpu::gpu.answer() != cudaSuccess) return cudaErrorInvalidValue;
  fake_gpu::gpu.reach(e);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  if (fake_gpu::gpu.answer() != cudaSuccess) return cudaErrorInvalidValue;
  for (fake_gpu::stream* s : fake_gpu::gpu.streams) fake_gpu::gpu.finish(s);
  return cudaSuccess;
}
