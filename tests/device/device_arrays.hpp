// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches in the memory of the device that is a CPU. Their numbers come late: they are there
// when the stream that writes them is waited for, and garbage before.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "device/device.hpp"
#include "laws/data.hpp"

namespace on_host {

/// Numbers in device memory, from `skip` elements after its begin on: at no multiple of 16 bytes.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t size, std::size_t skip = 1) : size_(size), skip_(skip) {
    void* p = nullptr;
    pp::cuda::check(cudaMalloc(&p, sizeof(T) * (size + skip)), "memory for a test");
    data_ = static_cast<T*>(p);
  }
  device_array(std::span<T const> values, cudaStream_t on, std::size_t skip = 1)
      : device_array(values.size(), skip) {
    write(values, on);
  }
  device_array(device_array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_), skip_(other.skip_) {}
  ~device_array() {
    if (data_ != nullptr) cudaFree(data_);
  }

  /// Writes when the stream comes to it.
  void write(std::span<T const> values, cudaStream_t on) {
    fake_gpu::gpu.that(on)->put(
        [to = data_ + skip_, from = std::vector<T>(values.begin(), values.end())] {
          if (!from.empty()) std::memcpy(to, from.data(), sizeof(T) * from.size());
        });
  }
  pp::device_span<T> view() const { return {data_ + skip_, size_}; }
  /// What is there now.
  std::vector<T> read() const { return {data_ + skip_, data_ + skip_ + size_}; }

 private:
  T* data_ = nullptr;
  std::size_t size_, skip_;
};

/// A copy of a batch on the device, written by the work of a stream.
template <class Trainer>
class device_copy {
 public:
  using element = typename Trainer::element;
  using batch = typename Trainer::batch;

  explicit device_copy(batch const& b, cudaStream_t on = nullptr)
      : inputs_(span_of(b.inputs), on), labels_(span_of(b.labels), on), on_(on) {
    for (int k = 1; k < pp::detail::max_inputs; ++k) {
      ids_.emplace_back(span_of(b.named_ids[k]), on);
      numbers_.emplace_back(span_of(b.named_numbers[k]), on, 3);
    }
  }
  typename Trainer::device_batch view() const {
    typename Trainer::device_batch b{inputs_.view(), labels_.view()};
    for (int k = 1; k < Trainer::model::graph.size.inputs; ++k)
      if (Trainer::model::graph.inputs[k].is_ids)
        b.named_ids[k] = ids_[std::size_t(k - 1)].view();
      else
        b.named_numbers[k] = numbers_[std::size_t(k - 1)].view();
    return b.ready_on(on_);
  }

 private:
  template <class T>
  static std::span<T const> span_of(std::span<T const> s) {
    return s;
  }
  template <class List>
  static auto span_of(List const& list) {
    return std::span<typename List::element_type>(list);
  }
  device_array<typename Trainer::input_type> inputs_;
  device_array<typename Trainer::label_type> labels_;
  std::vector<device_array<int>> ids_;
  std::vector<device_array<element>> numbers_;
  cudaStream_t on_;
};

}  // namespace on_host
