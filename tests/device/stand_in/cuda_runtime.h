// SPDX-License-Identifier: BSL-1.0
//
// Stands in for CUDA's own header, so that the engine for a GPU runs on the CPU. What is put on a
// stream is done when it is waited for: see device/tasks.hpp.
#pragma once

#include <climits>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <utility>

#include <sys/mman.h>

#include "device/tasks.hpp"

#define __global__

enum cudaError_t {
  cudaSuccess,
  cudaErrorInvalidValue,
  cudaErrorMemoryAllocation,
  cudaErrorNoDevice,
  cudaErrorNoKernelImageForDevice,
  cudaErrorInvalidDeviceFunction,
  cudaErrorInvalidDevice,
  cudaErrorInvalidResourceHandle,
  cudaErrorPeerAccessAlreadyEnabled,
  cudaErrorLaunchTimeout,  // streams that wait for each other
  cudaErrorStreamCaptureUnsupported,
  cudaErrorStreamCaptureInvalidated,
  cudaErrorStreamCaptureUnmatched,
  cudaErrorStreamCaptureUnjoined,
  cudaErrorStreamCaptureIsolation,
  cudaErrorCapturedEvent,
  cudaErrorNotReady
};
#define CUDART_VERSION 13000
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0,
                          cudaEventDisableTiming = 2;

struct cudaDeviceProp {
  char name[64];
  int major, minor;
  std::size_t sharedMemPerBlockOptin;
  int multiProcessorCount;
};

namespace fake_gpu {

/// How often programs called what they are to call seldom or never.
struct counters {
  long timings = 0;                    // cudaEventElapsedTime
  long timed_records = 0;              // cudaEventRecord of an event that keeps a time
  long downloads = 0, downloaded = 0;  // copies to the host, and their bytes
  long uploaded = 0;                   // bytes of copies from the host
  long pageable =
      0;  // of them asynchronous ones to memory that is not pinned: the caller waits for them
  long launches = 0;                        // of kernels, one by one
  long peer_copies = 0, between_peers = 0;  // asynchronous copies between devices, and their bytes
};

/// Whose memory it is, and whether it has pages of its own.
struct home {
  int device = 0;
  bool is_mapped = false;
};

/// The device that is current on this thread.
inline thread_local int current = 0;

struct device : machine {
  int devices = 1, driver = 13000;
  std::size_t shared_bytes = 227 * 1024;  // of a block, at most
  int multiprocessors[8]{132, 132, 132, 132, 132, 132, 132, 132};
  bool are_peers = true;  // whether the hardware lets devices reach each other's memory
  std::set<std::pair<int, int>> peers;  // enabled: a device, and another whose memory it reaches
  long foreign = 0;  // pages of other devices that kernels read or wrote, as none must here
  std::map<void*, long> memory, pinned;  // what programs have of each, by where it begins
  long most_pinned = LONG_MAX;           // bytes that the host locks
  std::map<void*, home> homes;           // of memory
  long graphs = 0;                       // instantiated, and not destroyed
  counters count;
  long calls = 0,
       failing = -1;  // of calls that can fail while a program runs, and which of them does
  cudaError_t last = cudaSuccess;
  std::map<int, stream*> of_program;  // the default streams, by device, from the first call on

  /// Where an address is; null: nowhere.
  static void* find(std::map<void*, long> const& all, void const* p) {
    auto after = all.upper_bound(const_cast<void*>(p));
    if (after == all.begin()) return nullptr;
    auto const& [begin, bytes] = *--after;
    return p < static_cast<char const*>(begin) + bytes ? begin : nullptr;
  }
  static bool holds(std::map<void*, long> const& all, void const* p) {
    return find(all, p) != nullptr;
  }
  bool is_pinned(void const* p) const { return holds(pinned, p); }
  /// The device of an address; -1: none.
  int device_of(void const* p) const {
    void* const begin = find(memory, p);
    return begin == nullptr ? -1 : homes.at(begin).device;
  }
  /// Runs a kernel, to which the memory of other devices is closed. A page that it reads or writes
  /// all the same is counted, and opened.
  void run_on(int index, std::function<void()> const& kernel);
  /// Opens the memory of one device, or of all for -1, and closes the others.
  void open_only(int index);
  /// The default stream does not wait for streams that are made not to.
  stream* that(stream* s) {
    if (s != nullptr) return s;
    stream*& mine = of_program[current];
    if (mine == nullptr) {
      streams.push_back(mine = new stream);
      mine->device = current;
    }
    return mine;
  }
  bool is_idle() const {
    for (stream const* s : streams)
      if (!s->tasks.empty()) return false;
    return true;
  }
  /// Of a call: what it returns. One that fails does nothing.
  cudaError_t answer() { return calls++ == failing ? last = cudaErrorInvalidValue : cudaSuccess; }
  cudaError_t answer(refusal r) {
    switch (r) {
      case refusal::none: return cudaSuccess;
      case refusal::unsupported: return last = cudaErrorStreamCaptureUnsupported;
      case refusal::invalidated: return last = cudaErrorStreamCaptureInvalidated;
      case refusal::unjoined: return last = cudaErrorStreamCaptureUnjoined;
      case refusal::isolation: return last = cudaErrorStreamCaptureIsolation;
      case refusal::captured: return last = cudaErrorCapturedEvent;
      case refusal::unmatched: return last = cudaErrorStreamCaptureUnmatched;
    }
    return cudaErrorInvalidValue;
  }
  /// Of a call that works on the current device only.
  cudaError_t answer_current(int index) {
    return index == current ? cudaSuccess : last = cudaErrorInvalidResourceHandle;
  }
  /// Of a copy that is put on a stream: the stream must be of a device that has one of the two, and
  /// what a graph copies between devices must not go through the host.
  cudaError_t answer_copy(void* to, void const* from, std::size_t bytes, stream const* s) {
    int const a = device_of(to), b = device_of(from);
    if (a != s->device && b != s->device) return last = cudaErrorInvalidValue;
    if (a < 0 || b < 0 || a == b) return cudaSuccess;
    ++count.peer_copies, count.between_peers += long(bytes);
    bool const reach = peers.contains({a, b}) && peers.contains({b, a});
    return s->in == nullptr || reach ? cudaSuccess : last = cudaErrorStreamCaptureUnsupported;
  }
  /// Of a call that no capture may see.
  cudaError_t answer_outside() {
    if (cudaError_t const e = answer(refuse_under_capture()); e != cudaSuccess) return e;
    return answer();
  }
  /// Of a call that puts something on a stream.
  cudaError_t answer_on(stream const* s) {
    if (cudaError_t const e = answer(check(s)); e != cudaSuccess) return e;
    return answer();
  }
  void copies(cudaMemcpyKind kind, std::size_t bytes) {
    if (kind == cudaMemcpyHostToDevice) count.uploaded += long(bytes);
    if (kind != cudaMemcpyDeviceToHost) return;
    ++count.downloads;
    count.downloaded += long(bytes);
  }
};
inline device gpu;

inline void device::open_only(int index) {
  for (auto const& [begin, h] : homes)
    if (h.is_mapped)
      mprotect(begin, std::size_t(memory.at(begin)),
               index < 0 || h.device == index ? PROT_READ | PROT_WRITE : PROT_NONE);
}
inline void device::run_on(int index, std::function<void()> const& kernel) {
  // A kernel that waits for others, as none here does, would be put on a stream: they do not nest.
  open_only(index);
  kernel();
  open_only(-1);
}
/// What the operating system calls when a kernel uses memory that is closed to it.
inline void open_foreign_page(int, siginfo_t* what, void*) {
  auto const page = reinterpret_cast<std::uintptr_t>(what->si_addr) & ~std::uintptr_t(4095);
  if (!device::holds(gpu.memory, what->si_addr)) std::signal(SIGSEGV, SIG_DFL);
  ++gpu.foreign;
  mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE);
}
/// A machine with several devices, whose memory is closed to each other's kernels, until the end
/// of the scope. Needs: no trainer lives at its start and its end.
struct several_devices {
  explicit several_devices(int count) {
    gpu.devices = count;
    around_kernels = [](int device, std::function<void()> const& work) {
      gpu.run_on(device, work);
    };
    struct sigaction action{};
    action.sa_sigaction = &open_foreign_page;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, &before);
  }
  several_devices(several_devices const&) = delete;
  ~several_devices() {
    gpu.devices = 1, current = 0;
    gpu.peers.clear();
    around_kernels = nullptr;
    sigaction(SIGSEGV, &before, nullptr);
  }
  struct sigaction before{};
};

}  // namespace fake_gpu

using cudaStream_t = fake_gpu::stream*;
using cudaEvent_t = fake_gpu::event*;

using cudaGraph_t = fake_gpu::graph*;
using cudaGraphExec_t = fake_gpu::graph*;
using cudaGraphNode_t = fake_gpu::node*;
struct cudaGraphEdgeData {
  unsigned char from_port, to_port, type, reserved[5];
};
inline constexpr unsigned long long cudaGraphInstantiateFlagUseNodePriority = 8;
enum cudaStreamCaptureMode {
  cudaStreamCaptureModeGlobal,
  cudaStreamCaptureModeThreadLocal,
  cudaStreamCaptureModeRelaxed
};

inline char const* cudaGetErrorString(cudaError_t e) {
  return e == cudaErrorNoDevice                   ? "no device"
         : e == cudaErrorMemoryAllocation         ? "out of memory"
         : e >= cudaErrorStreamCaptureUnsupported ? "not under capture"
                                                  : "invalid value";
}
inline cudaError_t cudaGetLastError() { return std::exchange(fake_gpu::gpu.last, cudaSuccess); }
inline cudaError_t cudaGetDeviceCount(int* count) {
  *count = fake_gpu::gpu.devices;
  return *count > 0 ? cudaSuccess : cudaErrorNoDevice;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int index) {
  *p = {"a CPU", 9, 0, fake_gpu::gpu.shared_bytes, fake_gpu::gpu.multiprocessors[index]};
  return cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) {
  *version = fake_gpu::gpu.driver;
  return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int index) {
  if (index < 0 || index >= fake_gpu::gpu.devices)
    return fake_gpu::gpu.last = cudaErrorInvalidDevice;
  fake_gpu::current = index;
  return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* index) {
  if (fake_gpu::gpu.devices == 0) return fake_gpu::gpu.last = cudaErrorNoDevice;
  *index = fake_gpu::current;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  *can = fake_gpu::gpu.are_peers && device != peer;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned) {
  using fake_gpu::gpu;
  if (!gpu.are_peers || peer == fake_gpu::current) return gpu.last = cudaErrorInvalidDevice;
  bool const is_new = gpu.peers.insert({fake_gpu::current, peer}).second;
  return is_new ? cudaSuccess : gpu.last = cudaErrorPeerAccessAlreadyEnabled;
}
struct cudaFuncAttributes {};
inline cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, void (*)()) { return cudaSuccess; }

inline void* fake_memory(std::map<void*, long>& of, std::size_t bytes) {
  using fake_gpu::gpu;
  bool const is_mapped = &of == &gpu.memory && gpu.devices > 1;
  void* const p =
      is_mapped ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                : ::operator new(bytes, std::align_val_t(256));
  std::memset(p, 0xff, bytes);
  of[p] = long(bytes);
  if (&of == &gpu.memory) gpu.homes[p] = {fake_gpu::current, is_mapped};
  return p;
}
inline cudaError_t free_fake_memory(std::map<void*, long>& of, void* p) {
  using fake_gpu::gpu;
  bool const is_mapped = &of == &gpu.memory && gpu.homes.at(p).is_mapped;
  if (&of == &gpu.memory) gpu.homes.erase(p);
  if (is_mapped)
    munmap(p, std::size_t(of.at(p)));
  else
    ::operator delete(p, std::align_val_t(256));
  of.erase(p);
  return cudaSuccess;
}
inline cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  if (cudaError_t const e = fake_gpu::gpu.answer(fake_gpu::gpu.refuse_under_capture());
      e != cudaSuccess)
    return e;
  *p = fake_memory(fake_gpu::gpu.memory, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMallocHost(void** p, std::size_t bytes) {
  if (cudaError_t const e = fake_gpu::gpu.answer(fake_gpu::gpu.refuse_under_capture());
      e != cudaSuccess)
    return e;
  long all = long(bytes);
  for (auto const& [at, size] : fake_gpu::gpu.pinned) all += size;
  if (all > fake_gpu::gpu.most_pinned) return fake_gpu::gpu.last = cudaErrorMemoryAllocation;
  *p = fake_memory(fake_gpu::gpu.pinned, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* p) { return free_fake_memory(fake_gpu::gpu.memory, p); }
inline cudaError_t cudaFreeHost(void* p) { return free_fake_memory(fake_gpu::gpu.pinned, p); }
inline cudaError_t cudaMemset(void* p, int value, std::size_t bytes) {
  if (cudaError_t const e = fake_gpu::gpu.answer(fake_gpu::gpu.refuse_under_capture());
      e != cudaSuccess)
    return e;
  std::memset(p, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (cudaError_t const e = fake_gpu::gpu.answer_outside(); e != cudaSuccess) return e;
  fake_gpu::gpu.copies(kind, bytes);
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}

enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
struct cudaPointerAttributes {
  cudaMemoryType type;
};
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, void const* p) {
  using fake_gpu::gpu;
  a->type = gpu.holds(gpu.memory, p) ? cudaMemoryTypeDevice
            : gpu.is_pinned(p)       ? cudaMemoryTypeHost
                                     : cudaMemoryTypeUnregistered;
  return gpu.answer();
}

inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -5;
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int priority) {
  fake_gpu::gpu.streams.push_back(*s = new fake_gpu::stream);
  (*s)->priority = priority;
  (*s)->device = fake_gpu::current;
  return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned flags) {
  return cudaStreamCreateWithPriority(s, flags, 0);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t s) {
  std::erase(fake_gpu::gpu.streams, s);
  delete s;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned flags) {
  *e = new fake_gpu::event;
  (*e)->is_timed = flags != cudaEventDisableTiming;
  (*e)->device = fake_gpu::current;
  return cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t e) {
  delete e;
  return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t from, cudaEvent_t to) {
  ++fake_gpu::gpu.count.timings;
  if (from->device != to->device) return fake_gpu::gpu.last = cudaErrorInvalidResourceHandle;
  *ms = 1;
  return fake_gpu::gpu.answer();
}
inline cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  if (cudaError_t const r = fake_gpu::gpu.answer(); r != cudaSuccess) return r;
  fake_gpu::gpu.count.timed_records += e->is_timed;
  s = fake_gpu::gpu.that(s);
  if (e->device != s->device) return fake_gpu::gpu.last = cudaErrorInvalidResourceHandle;
  return fake_gpu::gpu.answer(fake_gpu::gpu.record(e, s));
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  if (cudaError_t const r = fake_gpu::gpu.answer(); r != cudaSuccess) return r;
  return fake_gpu::gpu.answer(fake_gpu::gpu.wait(s, e));
}
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t s) {
  if (cudaError_t const e = fake_gpu::gpu.answer_on(s); e != cudaSuccess) return e;
  if (cudaError_t const e = fake_gpu::gpu.answer_copy(to, from, bytes, s); e != cudaSuccess)
    return e;
  fake_gpu::gpu.copies(kind, bytes);
  fake_gpu::gpu.count.pageable += kind == cudaMemcpyDeviceToHost && !fake_gpu::gpu.is_pinned(to);
  s->put([=] { std::memcpy(to, from, bytes); }, fake_gpu::node_kind::copy);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* p, int value, std::size_t bytes, cudaStream_t s) {
  if (cudaError_t const e = fake_gpu::gpu.answer_on(s); e != cudaSuccess) return e;
  if (fake_gpu::gpu.device_of(p) != s->device) return fake_gpu::gpu.last = cudaErrorInvalidValue;
  s->put([=] { std::memset(p, value, bytes); }, fake_gpu::node_kind::copy);
  return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (cudaError_t const e = fake_gpu::gpu.answer_outside(); e != cudaSuccess) return e;
  return fake_gpu::gpu.finish(s) ? cudaSuccess : fake_gpu::gpu.last = cudaErrorLaunchTimeout;
}
/// Does a task of the stream, or of another one, at a time.
inline cudaError_t cudaStreamQuery(cudaStream_t s) {
  if (cudaError_t const e = fake_gpu::gpu.answer_outside(); e != cudaSuccess) return e;
  if (!s->tasks.empty()) (void)fake_gpu::gpu.go_on(s);
  return s->tasks.empty() ? cudaSuccess : cudaErrorNotReady;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (cudaError_t const r = fake_gpu::gpu.answer_outside(); r != cudaSuccess) return r;
  if (e->in != nullptr) return fake_gpu::gpu.answer(fake_gpu::refusal::captured);
  fake_gpu::gpu.reach(e);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  if (cudaError_t const e = fake_gpu::gpu.answer_outside(); e != cudaSuccess) return e;
  for (fake_gpu::stream* s : fake_gpu::gpu.streams)
    if (s->device == fake_gpu::current && !fake_gpu::gpu.finish(s))
      return fake_gpu::gpu.last = cudaErrorLaunchTimeout;
  return cudaSuccess;
}

// ---- graphs ----

inline cudaError_t cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode) {
  if (cudaError_t const e = fake_gpu::gpu.answer(); e != cudaSuccess) return e;
  return fake_gpu::gpu.answer(fake_gpu::gpu.begin_capture(s));
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* graph) {
  std::unique_ptr<fake_gpu::graph> made;
  cudaError_t const e = fake_gpu::gpu.answer(fake_gpu::gpu.end_capture(s, made));
  *graph = made.release();
  return e;
}
inline cudaError_t cudaGraphGetEdges(cudaGraph_t g, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                     cudaGraphEdgeData* data, std::size_t* count) {
  std::size_t n = 0;
  for (fake_gpu::node& x : g->nodes)
    for (int const before : x.after) {
      if (from != nullptr && n < *count) {
        from[n] = &g->nodes[std::size_t(before)], to[n] = &x;
        data[n] = {static_cast<unsigned char>(x.programmatic.contains(before)),
                   0,
                   static_cast<unsigned char>(x.programmatic.contains(before)),
                   {}};
      }
      ++n;
    }
  if (from == nullptr || *count > n) *count = n;
  return cudaSuccess;
}
inline cudaError_t cudaGraphGetNodes(cudaGraph_t g, cudaGraphNode_t* nodes, std::size_t* count) {
  for (std::size_t i = 0; nodes != nullptr && i < *count && i < g->nodes.size(); ++i)
    nodes[i] = &g->nodes[i];
  if (nodes == nullptr || *count > g->nodes.size()) *count = g->nodes.size();
  return cudaSuccess;
}
inline cudaError_t cudaGraphRemoveDependencies(cudaGraph_t, cudaGraphNode_t const* from,
                                               cudaGraphNode_t const* to,
                                               cudaGraphEdgeData const* data, std::size_t count) {
  if (cudaError_t const e = fake_gpu::gpu.answer(); e != cudaSuccess) return e;
  for (std::size_t i = 0; i < count; ++i) {
    bool const is_early = to[i]->programmatic.erase(from[i]->number) > 0;
    if (is_early != (data[i].type != 0) || to[i]->after.erase(from[i]->number) == 0)
      return fake_gpu::gpu.last = cudaErrorInvalidValue;
  }
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t g,
                                        unsigned long long = 0) {
  *made = nullptr;
  if (cudaError_t const e = fake_gpu::gpu.answer_outside(); e != cudaSuccess) return e;
  *made = new fake_gpu::graph(*g);
  ++fake_gpu::gpu.graphs;
  fake_gpu::gpu.last_captured = *made;
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t g, cudaStream_t s) {
  if (cudaError_t const e = fake_gpu::gpu.answer_outside(); e != cudaSuccess) return e;
  fake_gpu::gpu.launch(*g, s);
  return cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete g;
  return cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t g) {
  --fake_gpu::gpu.graphs;
  if (fake_gpu::gpu.last_captured == g) fake_gpu::gpu.last_captured = nullptr;
  delete g;
  return cudaSuccess;
}
