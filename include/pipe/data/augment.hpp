// SPDX-License-Identifier: BSL-1.0
//
// Augmentation of images: random crops, flips, squares cut out, and mixtures of two images. The
// change of a sample is a function of the seed and of the sample's place among all samples of a
// run. So a resumed run, also with mini-batches of another size, sees the same images. Images in a
// GPU's memory are changed by augment_on_device.cuh, which makes each number by the functions of
// this header.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/base/sentence.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// Extents of images, and what is done to them at random.
struct augmentation {
  int height = 0, width = 0, channels = 0;
  int padding = 0;         ///< a random crop with that many zeros on each side
  bool flip = false;       ///< exchanges left and right of every other image
  int cutout = 0;          ///< side of a square that becomes 0, whose centre is anywhere
  std::uint64_t seed = 0;  ///< of all random numbers
};

namespace detail {

/// Element `index` of the random numbers of the sample at a place.
PIPE_HD constexpr philox_block augmentation_bits(std::uint64_t seed, long place,
                                                 std::uint64_t index) {
  constexpr std::uint64_t stream = std::uint64_t(5) << 60;  // which no other random numbers use
  return math::random_block(seed, stream | index, std::uint64_t(place));
}

/// The changes of one image: the crop's distance from the middle, the upper left corner of the
/// square that is cut out, and whether left and right are exchanged.
struct image_change {
  int down, right, top, left;
  bool flips;
};
PIPE_HD constexpr image_change change_at(augmentation const& a, long place) {
  philox_block const moves = augmentation_bits(a.seed, place, 0),
                     cuts = augmentation_bits(a.seed, place, 1);
  std::uint32_t const shifts = 2 * std::uint32_t(a.padding) + 1;
  return image_change{int(moves.word[0] % shifts) - a.padding,
                      int(moves.word[1] % shifts) - a.padding,
                      int(cuts.word[0] % std::uint32_t(a.height)) - a.cutout / 2,
                      int(cuts.word[1] % std::uint32_t(a.width)) - a.cutout / 2,
                      a.flip && moves.word[2] >> 31 != 0};
}
/// The number of the pixel that moves to row y and column x; -1 for a zero.
PIPE_HD constexpr long pixel_for(augmentation const& a, image_change const& c, int y, int x) {
  int const row = y + c.down, column = (c.flips ? a.width - 1 - x : x) + c.right;
  bool const is_out = row < 0 || row >= a.height || column < 0 || column >= a.width ||
                      (y >= c.top && y < c.top + a.cutout && x >= c.left && x < c.left + a.cutout);
  return is_out ? -1 : long(row) * a.width + column;
}

/// Number i of augmented images, made by itself, as a GPU makes them.
template <class T>
struct augmented_number {
  T const* images = nullptr;
  augmentation a;
  long place = 0;

  PIPE_HD constexpr T operator()(long i) const {
    long const size = long(a.height) * a.width * a.channels, image = i / size,
               pixel = i % size / a.channels, channel = i % a.channels;
    long const from =
        pixel_for(a, change_at(a, place + image), int(pixel / a.width), int(pixel % a.width));
    return from < 0 ? T(0) : images[image * size + from * a.channels + channel];
  }
};

/// Number of images in a list.
///
/// throws: data_error for settings out of range and parts of images
inline std::size_t augmented_images(augmentation const& a, std::size_t numbers, long place) {
  constexpr int most = 65'536;
  bool fits = place >= 0;
  for (int const extent : {a.height, a.width, a.channels})
    fits = fits && extent >= 1 && extent <= most;
  for (int const reach : {a.padding, a.cutout}) fits = fits && reach >= 0 && reach <= most;
  if (!fits)
    throw data_error(
        "augment: expected extents from 1 to 65536, padding and cutout from 0 to 65536, and a place"
        " of at least 0");
  std::size_t const size = std::size_t(a.height) * a.width * a.channels;
  if (numbers % size != 0)
    throw data_error("augment: expected whole images of " + std::to_string(size) +
                     " numbers, got " + std::to_string(numbers));
  return numbers / size;
}

}  // namespace detail

/// Changes images in place: a random crop of the padded image, a flip, a square cut out. `place`:
/// number of samples of all epochs before the first image, as batches::sample_position() counts
/// samples.
///
/// shape:  images[samples][height][width][channels]
/// law:    image i is a function of itself, the settings and place + i
/// throws: data_error for settings out of range and parts of images
/// source: crops and flips, He et al., CVPR 2016; squares, DeVries and Taylor, "Cutout", 2017
template <class T>
void augment(std::span<T> images, augmentation const& a, long place) {
  std::size_t const count = detail::augmented_images(a, images.size(), place),
                    size = images.size() / std::max<std::size_t>(count, 1);
  std::vector<T> from(size);
  for (std::size_t i = 0; i < count; ++i) {
    T* to = images.data() + i * size;
    std::copy(to, to + size, from.begin());
    detail::image_change const change = detail::change_at(a, place + long(i));
    for (int y = 0; y < a.height; ++y)
      for (int x = 0; x < a.width; ++x) {
        long const pixel = detail::pixel_for(a, change, y, x);
        for (int c = 0; c < a.channels; ++c)
          *to++ = pixel < 0 ? T(0) : from[std::size_t(pixel * a.channels + c)];
      }
  }
}

/// A sample of mix_up: `share` of itself and 1 - share of another sample of the mini-batch.
struct mixed_sample {
  std::size_t other;
  float share;
};

namespace detail {

/// A number of a mixture. Products of two floats are exact in double, so a compiler that contracts
/// a product with the sum changes no bit.
template <class T>
PIPE_HD constexpr T mixed_number(T own, T other, float share) {
  return T(double(share) * double(own) + double(1 - share) * double(other));
}

/// Number i of a mini-batch of mixtures, made by itself.
template <class T>
struct mixed_number_at {
  T const* images = nullptr;
  mixed_sample const* samples = nullptr;
  long size = 0;  // of an image

  PIPE_HD constexpr T operator()(long i) const {
    mixed_sample const& s = samples[i / size];
    return mixed_number(images[i], images[long(s.other) * size + i % size], s.share);
  }
};

}  // namespace detail

/// The mixtures of a mini-batch: each sample with the next, the last sample with the first.
///
/// law:    share is distributed as Beta(alpha, alpha); the share of sample i is a function of the
///         seed and place + i
/// throws: data_error for an alpha that is not in (0, 1], and a place below 0
/// source: Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018; Jöhnk, 1964
inline std::vector<mixed_sample> mixed_samples(std::size_t count, std::uint64_t seed, long place,
                                               double alpha) {
  if (!(alpha > 0 && alpha <= 1))
    detail::throw_error<data_error>({"mix_up: alpha: expected a number in (0, 1], got ", alpha});
  if (place < 0)
    throw data_error("mix_up: place: expected 0 or more, got " + std::to_string(place));
  std::vector<mixed_sample> samples(count);
  for (std::size_t i = 0; i < count; ++i) {
    samples[i] = {(i + 1) % count, 1};
    for (std::uint64_t attempt = 2; attempt < 1000; ++attempt) {  // mostly one or two attempts
      detail::philox_block const bits = detail::augmentation_bits(seed, place + long(i), attempt);
      double const u = std::pow(double(math::unit_uniform(bits.word[0])), 1 / alpha),
                   v = std::pow(double(math::unit_uniform(bits.word[1])), 1 / alpha);
      if (u + v > 1 || u + v == 0) continue;
      samples[i].share = float(u / (u + v));
      break;
    }
  }
  return samples;
}

/// Mixes the images of a mini-batch in place, as mixed_samples says, which is returned. The loss of
/// a sample then has two labels: share times the loss of its own label, and 1 - share times the
/// loss of the other sample's label.
///
/// shape:  images[samples][height][width][channels] -> result[samples]
/// throws: data_error as mixed_samples and augment do
template <class T>
std::vector<mixed_sample> mix_up(std::span<T> images, augmentation const& a, long place,
                                 double alpha) {
  std::size_t const count = detail::augmented_images(a, images.size(), place),
                    size = images.size() / std::max<std::size_t>(count, 1);
  std::vector<mixed_sample> const samples = mixed_samples(count, a.seed, place, alpha);
  std::vector<T> const first(images.begin(), images.begin() + std::ptrdiff_t(size));
  for (std::size_t i = 0; i < count; ++i) {
    T* const own = images.data() + i * size;
    T const* const other = i + 1 < count ? own + size : first.data();
    for (std::size_t k = 0; k < size; ++k)
      own[k] = detail::mixed_number(own[k], other[k], samples[i].share);
  }
  return samples;
}

}  // namespace pp
PIPE_OPTIMIZED_END
