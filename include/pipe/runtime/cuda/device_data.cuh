// SPDX-License-Identifier: BSL-1.0
//
// A program's arrays in device memory: their checks before a run, and the kernels that convert
// them. Only programs that have such arrays instantiate the members of device_data, and so compile
// the kernels.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/update/check_values.hpp>
#include <pipe/backend/cuda/update/convert_values.hpp>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/backend/value_check.hpp>

namespace pp::cuda {

/// The checks and conversions of arrays in device memory. Value: the type of values that kernels
/// read and write.
///
/// needs: the executor outlives this object; no run is in progress
template <class Value>
class device_data {
 public:
  explicit device_data(detail::cuda_executor& executor) : executor_(executor) {}

  /// Prepares the kernels. Must be called before a job with data or outputs in device memory.
  void prepare() {
    if (is_prepared_) return;
    prepare_kernels(kernels{});
    if constexpr (is_converted) executor_.uploads(0).convert_by({&to_values, &to_floats});
    read_ = pinned_buffer(check_values_kernel::found_bytes);
    is_prepared_ = true;
  }

  /// Whether the device can read the memory at an address.
  static bool is_readable(void const* p) {
    cudaPointerAttributes of{};
    check(cudaPointerGetAttributes(&of, p), "attributes of an address");
    return of.type != cudaMemoryTypeUnregistered;
  }

  /// Checks arrays behind the work that has been put on a stream, and waits for the results.
  ///
  /// shape: checks[count] -> results[count]
  void look(detail::value_check const* checks, int count, detail::checked_values* results,
            void* stream) {
    if (count == 0) return;
    executor_.uploads(0).follow(stream, 1);
    check_values_kernel::arguments a;
    for (int i = 0; i < count; ++i) a.of[i] = checks[i];
    a.arrays = count;
    a.found = reinterpret_cast<detail::checked_values*>(executor_.found());
    launch_body<check_values_kernel>(a, on());
    auto const* found = download<detail::checked_values>(count * check_values_kernel::check_blocks);
    for (int i = 0; i < count; ++i) {
      results[i] = {checks[i].count, 0};
      for (int b = 0; b < check_values_kernel::check_blocks; ++b, ++found) {
        results[i].first = found->first < results[i].first ? found->first : results[i].first;
        results[i].counted += found->counted;
      }
    }
  }

  /// The sum of the weights of a loss's terms: see sum_weights_kernel.
  ///
  /// needs: look() has found no fault in the labels and the weights
  template <class Loss>
  double sum_weights(int const* labels, float const* weights, long rows, double columns) {
    using kernel = sum_weights_kernel<Loss::labels_are_ids, typename Loss::class_weights>;
    prepare_body<kernel>();
    launch_body<kernel>(
        {labels, weights, rows, columns, reinterpret_cast<double*>(executor_.found())}, on());
    return *download<double>(1);
  }

 private:
  static constexpr bool is_converted = !std::is_same_v<Value, float>;
  using both = kernel_list<check_values_kernel, flat_kernel<from_program<Value>>,
                           flat_kernel<to_program<Value>>>;
  using kernels = std::conditional_t<is_converted, both, kernel_list<check_values_kernel>>;

  static void to_values(void* to, float const* from, long count, cudaStream_t on) {
    launch_body<flat_kernel<from_program<Value>>>(
        {flat_ranges::over(count), {static_cast<Value*>(to), from}}, on);
  }
  static void to_floats(float* to, void const* from, long count, cudaStream_t on) {
    launch_body<flat_kernel<to_program<Value>>>(
        {flat_ranges::over(count), {to, static_cast<Value const*>(from)}}, on);
  }

  cudaStream_t on() const { return executor_.stream_of(0); }
  /// The first results in executor_.found(), once all work of rank 0 is done.
  template <class T>
  T const* download(long count) {
    check(cudaMemcpyAsync(read_.data(), executor_.found(), sizeof(T) * std::size_t(count),
                          cudaMemcpyDeviceToHost, on()),
          "download of the checks of a mini-batch");
    check(cudaStreamSynchronize(on()), "checks of a mini-batch");
    return read_.as<T const>();
  }

  detail::cuda_executor& executor_;
  bool is_prepared_ = false;
  pinned_buffer read_;
};

}  // namespace pp::cuda
