// SPDX-License-Identifier: BSL-1.0
//
// The operands of a launch that a watcher sees. They are in device memory; operands for which the
// watcher asks are downloaded to the host as floats.
#pragma once

#include <vector>

#include <pipe/backend/cuda/update/not_finite.hpp>
#include <pipe/runtime/cuda/conversion.hpp>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// A launch that has just run on stream `on`. Its operands are in `value_type` unless they are
/// wide.
struct watched_launch {
  void* const* operands;
  launch_seen const& by;
  dtype value_type;
  cudaStream_t on;
  int* found;                                 // result of a search, in device memory
  std::vector<std::vector<float>> numbers{};  // by operand

  static constexpr int search_blocks = cuda::find_not_finite_kernel::search_blocks;

  operand_reader reader() {
    return {this, [](void* of, int k) { return static_cast<watched_launch*>(of)->values(k); },
            [](void* of) { return static_cast<watched_launch*>(of)->first_not_finite(); }};
  }

 private:
  dtype type_of(int k) const { return by.operands[k].is_wide ? dtype::f32 : value_type; }
  void const* values(int k) {
    numbers.resize(std::size_t(by.what->count));
    std::vector<float>& to = numbers[std::size_t(k)];
    long const count = by.operands[k].elements;
    if (count == 0 || !to.empty()) return to.data();
    std::vector<char> copy(std::size_t(count * size_of(type_of(k))));
    cuda::check(cudaMemcpy(copy.data(), operands[k], copy.size(), cudaMemcpyDeviceToHost),
                "download for a watcher");
    to.resize(std::size_t(count));
    convert_to_float(type_of(k), to.data(), copy.data(), count);
    return to.data();
  }
  int first_not_finite() const {
    if (all_finite(0, by.what->count)) return -1;
    int k = 0;
    while (all_finite(k, k + 1)) ++k;
    return k;
  }
  /// Whether all values of operands [first, end) are finite, by one search on the device.
  bool all_finite(int first, int end) const {
    cuda::find_not_finite_kernel::arguments search;
    for (int k = first; k < end; ++k)
      if (by.operands[k].elements > 0)
        search.of[search.operands++] = {operands[k], by.operands[k].elements, type_of(k)};
    search.found = found;
    cuda::launch_body<cuda::find_not_finite_kernel>(search, on);
    int flags[search_blocks];
    cuda::check(cudaMemcpyAsync(flags, search.found, sizeof flags, cudaMemcpyDeviceToHost, on),
                "download of a search");
    cuda::check(cudaStreamSynchronize(on), "a search for numbers that are not finite");
    for (int const flag : flags)
      if (flag == 1) return false;
    return true;
  }
};

}  // namespace pp::detail
