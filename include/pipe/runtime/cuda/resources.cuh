// SPDX-License-Identifier: BSL-1.0
//
// RAII owners of CUDA resources: memory, streams and events. Every call of the CUDA runtime is
// checked.
#pragma once

#include <cstddef>
#include <utility>

#include <pipe/backend/cuda/core/check.cuh>
#include <pipe/base/bytes.hpp>
#include <pipe/base/error.hpp>

namespace pp::cuda {

/// Bump allocator over a part of a rank's arena.
///
/// law: items have disjoint memory at multiples of `alignment`, in the order of the calls; nothing
///      is freed
class bump_allocator {
 public:
  bump_allocator() = default;
  bump_allocator(char* begin, long bytes) : begin_(begin), next_(begin), end_(begin + bytes) {}
  /// Memory for `count` items, aligned as the memory plan counts it.
  ///
  /// throws: pp::error if the part is exhausted
  template <class T>
  T* take(long count) {
    char* const p = next_;
    next_ += detail::align_up(count * long(sizeof(T)));
    if (next_ > end_)
      detail::throw_error<error>({"bookkeeping on the device: the plan has ", end_ - begin_,
                                  " bytes, expected at least ", next_ - begin_});
    return reinterpret_cast<T*>(p);
  }

 private:
  char *begin_ = nullptr, *next_ = nullptr, *end_ = nullptr;
};

/// Kind of memory: on the device, or page-locked on the host.
enum class memory_place : unsigned char { device, pinned };

/// Owner of an allocation. Movable, not copyable.
template <memory_place Where>
class buffer {
 public:
  buffer() = default;
  /// Allocates `bytes`; device memory is zeroed.
  ///
  /// throws: pp::error if the CUDA runtime refuses; nothing is allocated for 0 bytes
  explicit buffer(long bytes) : buffer() {  // so that the destructor runs if the body throws
    bytes_ = bytes;
    if (bytes == 0) return;
    void* p = nullptr;
    if constexpr (Where == memory_place::device) {
      check(cudaMalloc(&p, std::size_t(bytes)), "allocation on the device");
      data_ = static_cast<char*>(p);
      check(cudaMemset(p, 0, std::size_t(bytes)), "clearing of memory");
    } else {
      check(cudaMallocHost(&p, std::size_t(bytes)), "allocation of page-locked memory");
      data_ = static_cast<char*>(p);
    }
  }
  buffer(buffer&& other) noexcept
      : bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  buffer& operator=(buffer&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    std::swap(data_, other.data_);
    return *this;
  }
  /// Freeing device memory waits for the device, so no kernel can still use it.
  ~buffer() {
    if (data_ == nullptr) return;
    if constexpr (Where == memory_place::device)
      cudaFree(data_);
    else
      cudaFreeHost(data_);
  }

  char* data() const { return data_; }
  /// The address as a pointer to T.
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  long bytes() const { return bytes_; }

 private:
  long bytes_ = 0;
  char* data_ = nullptr;
};
using device_buffer = buffer<memory_place::device>;
using pinned_buffer = buffer<memory_place::pinned>;

/// Owner of a stream that does not synchronize with the default stream. priority: among kernels
/// that could start, a device prefers those whose stream has a lower number; 0: the default
///
/// throws: pp::error if the CUDA runtime refuses a stream
class stream {
 public:
  explicit stream(int priority = 0) {
    check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority),
          "creation of a stream");
  }
  stream(stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  stream& operator=(stream&&) = delete;
  ~stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Owner of an event. Only timed events may be used for elapsed times; untimed events are cheaper.
class event {
 public:
  /// throws: pp::error if the CUDA runtime refuses an event
  explicit event(bool is_timed = false) {
    check(cudaEventCreateWithFlags(&event_, is_timed ? cudaEventDefault : cudaEventDisableTiming),
          "an event");
  }
  event(event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  event& operator=(event&&) = delete;
  ~event() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  operator cudaEvent_t() const { return event_; }
  /// Blocks the host until the event has occurred; returns at once if it was never recorded.
  void wait() const { check(cudaEventSynchronize(event_), "wait for an event"); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace pp::cuda
