// SPDX-License-Identifier: BSL-1.0
//
// Augmentation of images in a GPU's memory, by Thrust: each number is made by itself, by the host's
// functions. The only header for programs that needs Thrust, which comes with CUDA; not part of
// <pipe/data.hpp>.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>

#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/tabulate.h>

#include <pipe/base/device_span.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/augment.hpp>

namespace pp {

namespace detail {

/// Enqueues to[i] = number(i) for all of `to`.
template <class T, class Number>
void tabulate_on_device(device_span<T> to, Number const& number, cudaStream_t stream) {
  auto const first = thrust::device_pointer_cast(to.data());
  thrust::tabulate(thrust::cuda::par_nosync.on(stream), first, first + std::ptrdiff_t(to.size()),
                   number);
}

}  // namespace detail

/// Augments images in device memory, behind the work of a stream. Returns before the images are
/// made.
///
/// shape:  from[samples][height][width][channels] -> to, of the same shape
/// law:    the bits of augment on the host
/// throws: data_error for settings out of range, parts of images and lists of different sizes;
///         thrust::system_error if the launch fails
/// needs:  `from` and `to` are in the memory of the current device, and have no number in common
inline void augment(device_span<float const> from, device_span<float> to, augmentation const& a,
                    long place, cudaStream_t stream = nullptr) {
  detail::augmented_images(a, from.size(), place);
  if (to.size() != from.size())
    detail::throw_error<data_error>(
        {"augment: expected room for ", from.size(), " numbers, got ", to.size()});
  detail::tabulate_on_device(to, detail::augmented_number<float>{from.data(), a, place}, stream);
}

/// Mixes images in device memory, behind the work of a stream: `samples` is a copy in device memory
/// of what mixed_samples makes. Returns before the images are mixed.
///
/// shape:  from[samples][...], samples[samples] -> to, of the shape of `from`
/// law:    the bits of mix_up on the host
/// throws: data_error for parts of images and lists of different sizes; thrust::system_error if the
///         launch fails
/// needs:  all lists stay in the memory of the current device until the images are mixed, each
///         `other` is below the number of samples, and `from` and `to` have no number in common
inline void mix_up(device_span<float const> from, device_span<float> to,
                   device_span<mixed_sample const> samples, cudaStream_t stream = nullptr) {
  std::size_t const count = samples.size(), size = count == 0 ? 0 : from.size() / count;
  if (count * size != from.size())
    detail::throw_error<data_error>(
        {"mix_up: ", from.size(), " numbers are no images of ", count, " samples"});
  if (to.size() != from.size())
    detail::throw_error<data_error>(
        {"mix_up: expected room for ", from.size(), " numbers, got ", to.size()});
  detail::tabulate_on_device(
      to, detail::mixed_number_at<float>{from.data(), samples.data(), long(size)}, stream);
}

}  // namespace pp
