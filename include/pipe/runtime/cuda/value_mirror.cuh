// SPDX-License-Identifier: BSL-1.0
//
// The parts of a chunk in device memory of which the host has a mirror, through which programs read
// and write parameters, gradients and states.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/base/list.hpp>
#include <pipe/runtime/cuda/device.cuh>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/parameters.cuh>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// Consecutive bytes of a chunk: their address on the device, and their offset in the mirror.
struct mirrored_range {
  char* device = nullptr;
  long mirror = 0, bytes = 0;
};
using mirrored_list = list<mirrored_range, 3>;

/// The end of the bytes that the mirror has at the offsets of the arena: everything up to the
/// averages.
inline long end_of_mirrored(chunk_description const& c) { return c.copies; }
/// Whether the optimizer's state is apart from the chunk's other regions: on the device at the end
/// of the arena, in the mirror behind everything else.
template <class P>
inline constexpr bool is_state_apart = P::zero::level > 0 && !P::offload::is_on;

/// The ranges of a chunk of compiled pipeline P. all_states: all ranges; otherwise parameters,
/// buffers and averages.
template <class P>
mirrored_list mirrored_ranges(cuda_executor const& executor,
                              cuda_parameter_operations<P> const& parameters, int chunk,
                              bool all_states) {
  chunk_description const& c = P::memory().chunks[chunk];
  auto const range = [&](long at, long bytes) {
    return mirrored_range{executor.memory(chunk) + at, at, bytes};
  };
  if (!all_states)
    return {{range(c.values, c.sizes.parameters), range(c.buffers, c.sizes.buffers),
             range(c.average, P::averaging::averages ? c.sizes.trained : 0)}};
  mirrored_range const together = range(c.values, end_of_mirrored(c) - c.values);
  if constexpr (is_state_apart<P>)
    return {{together,
             {reinterpret_cast<char*>(parameters.states().of(c)), end_of_mirrored(c),
              parameters.own().state_bytes(c)}}};
  else
    return {{together}};
}

/// Copies ranges from the device to a mirror, which grows as needed.
inline void copy_to_host(mirrored_list const& ranges, std::vector<char>& mirror) {
  for (mirrored_range const& r : ranges) {
    std::size_t const end = std::size_t(r.mirror + r.bytes);
    if (mirror.size() < end) mirror.resize(end);
    if (r.bytes > 0)
      cuda::check(cudaMemcpy(mirror.data() + r.mirror, r.device, std::size_t(r.bytes),
                             cudaMemcpyDeviceToHost),
                  "download of parameters");
  }
}
/// Copies ranges from a mirror to the device.
inline void copy_to_device(mirrored_list const& ranges, std::vector<char> const& mirror) {
  for (mirrored_range const& r : ranges)
    if (r.bytes > 0)
      cuda::check(cudaMemcpy(r.device, mirror.data() + r.mirror, std::size_t(r.bytes),
                             cudaMemcpyHostToDevice),
                  "upload of parameters");
}

}  // namespace pp::detail
