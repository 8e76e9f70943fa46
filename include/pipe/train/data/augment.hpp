// SPDX-License-Identifier: BSL-1.0
//
// Augmentation of images on the host: random crops, flips, squares cut out, and mixtures of two.
// What happens to a sample is a function of the seed and of its place among all samples of a run,
// so a run that is resumed, also with mini-batches of another size, sees the same images.
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

#include <pipe/base/error.hpp>
#include <pipe/base/philox.hpp>

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

/// Random numbers of a sample: element `index` of those at its place.
inline philox_block augmentation_bits(std::uint64_t seed, long place, std::uint64_t index) {
  constexpr std::uint64_t stream = std::uint64_t(5) << 60;  // of no other random numbers
  return random_block(seed, stream | index, std::uint64_t(place));
}

/// Number of images in a list.
///
/// throws: data_error for extents below 1 and parts of images
inline std::size_t augmented_images(augmentation const& a, std::size_t numbers, long place) {
  if (a.height < 1 || a.width < 1 || a.channels < 1 || a.padding < 0 || a.cutout < 0 || place < 0)
    throw data_error(
        "augment: expected extents of at least 1, padding, cutout and a place of at least 0");
  std::size_t const size = std::size_t(a.height) * a.width * a.channels;
  if (numbers % size != 0)
    throw data_error("augment: expected whole images of " + std::to_string(size) +
                     " numbers, got " + std::to_string(numbers));
  return numbers / size;
}

}  // namespace detail

/// Changes images in place: a random crop of the padded image, a flip, a square cut out. `place`:
/// number of samples of all epochs before the first one, as batches::sample_position() counts them.
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
    std::span<T> const image = images.subspan(i * size, size);
    detail::philox_block const moves = detail::augmentation_bits(a.seed, place + long(i), 0),
                               cuts = detail::augmentation_bits(a.seed, place + long(i), 1);
    std::uint32_t const steps = 2 * std::uint32_t(a.padding) + 1;
    int const down = int(moves.word[0] % steps) - a.padding,
              right = int(moves.word[1] % steps) - a.padding;
    bool const flips = a.flip && moves.word[2] >> 31 != 0;
    int const top = int(cuts.word[0] % std::uint32_t(a.height)) - a.cutout / 2,
              left = int(cuts.word[1] % std::uint32_t(a.width)) - a.cutout / 2;
    std::copy(image.begin(), image.end(), from.begin());
    for (int y = 0; y < a.height; ++y)
      for (int x = 0; x < a.width; ++x) {
        int const row = y + down, column = (flips ? a.width - 1 - x : x) + right;
        bool const is_out = row < 0 || row >= a.height || column < 0 || column >= a.width ||
                            (y >= top && y < top + a.cutout && x >= left && x < left + a.cutout);
        for (int c = 0; c < a.channels; ++c)
          image[(std::size_t(y) * a.width + x) * a.channels + c] =
              is_out ? T(0) : from[(std::size_t(row) * a.width + column) * a.channels + c];
      }
  }
}

/// A sample of mixed_up: `share` of itself and 1 - share of another one of the mini-batch.
struct mixed_sample {
  std::size_t other;
  float share;
};

/// Mixes each image of a mini-batch with the one after it, the last with the first. The loss is
/// that of two labels: share times that of its own, and 1 - share times that of the other's.
///
/// shape:  images[samples][height][width][channels] -> result[samples]
/// law:    share is distributed as Beta(alpha, alpha), a function of the seed and the place
/// throws: data_error for an alpha that is not in (0, 1], and as augment
/// source: Zhang et al., "mixup: beyond empirical risk minimization", ICLR 2018; Jöhnk, 1964
template <class T>
std::vector<mixed_sample> mix_up(std::span<T> images, augmentation const& a, long place,
                                 double alpha) {
  if (!(alpha > 0 && alpha <= 1))
    throw data_error("mix_up: alpha: expected a number in (0, 1], got " + std::to_string(alpha));
  std::size_t const count = detail::augmented_images(a, images.size(), place),
                    size = images.size() / std::max<std::size_t>(count, 1);
  std::vector<mixed_sample> samples(count);
  std::vector<T> const first(images.begin(), images.begin() + std::ptrdiff_t(size));
  for (std::size_t i = 0; i < count; ++i) {
    mixed_sample& s = samples[i];
    s = {(i + 1) % count, 1};
    for (std::uint64_t attempt = 2; attempt < 1000; ++attempt) {  // nearly always one or two
      detail::philox_block const bits = detail::augmentation_bits(a.seed, place + long(i), attempt);
      double const u = std::pow(double(unit_uniform(bits.word[0])), 1 / alpha),
                   v = std::pow(double(unit_uniform(bits.word[1])), 1 / alpha);
      if (u + v > 1 || u + v == 0) continue;
      s.share = float(u / (u + v));
      break;
    }
    T const* const other = i + 1 < count ? images.data() + (i + 1) * size : first.data();
    for (std::size_t k = 0; k < size; ++k) {
      T& x = images[i * size + k];
      x = T(s.share) * x + T(1 - s.share) * other[k];
    }
  }
  return samples;
}

}  // namespace pp
