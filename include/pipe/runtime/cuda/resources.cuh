// SPDX-License-Identifier: BSL-1.0
//
// Resources of the CUDA runtime, released by destructors: memory, streams and events. Every call is
// checked.
#pragma once

#include <cstddef>
#include <utility>

#include <pipe/backend/cuda/block/check.cuh>
#include <pipe/base/bytes.hpp>
#include <pipe/base/error.hpp>

namespace pp::cuda {

/// Gives out a part of a rank's memory, in the order in which it is asked.
class room {
 public:
  room() = default;
  room(char* begin, long bytes) : next_(begin), end_(begin + bytes) {}
  /// Of `count` items; aligned, as the plan counts them.
  template <class T>
  T* take(long count) {
    char* const p = next_;
    next_ += align_up(count * long(sizeof(T)));
    if (next_ > end_) throw error("the device's books are larger than planned");
    return reinterpret_cast<T*>(p);
  }

 private:
  char *next_ = nullptr, *end_ = nullptr;
};

/// Memory of the device, or of the host that the device can reach (pinned).
enum class memory_place : unsigned char { device, pinned };

template <memory_place Where>
class buffer {
 public:
  buffer() = default;
  /// All zeros.
  explicit buffer(long bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* p = nullptr;
    if constexpr (Where == memory_place::device) {
      check(cudaMalloc(&p, std::size_t(bytes)), "memory of the device");
      data_ = static_cast<char*>(p);
      check(cudaMemset(p, 0, std::size_t(bytes)), "memory of the device");
    } else {
      check(cudaMallocHost(&p, std::size_t(bytes)), "pinned memory of the host");
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
  ~buffer() {
    if (data_ == nullptr) return;
    if constexpr (Where == memory_place::device)
      cudaFree(data_);
    else
      cudaFreeHost(data_);
  }

  char* data() const { return data_; }
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

class stream {
 public:
  stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream"); }
  stream(stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  stream& operator=(stream&&) = delete;
  ~stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class event {
 public:
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
  /// Until the host sees it reached; at once if it was never recorded.
  void wait() const { check(cudaEventSynchronize(event_), "a wait for an event"); }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace pp::cuda
