// SPDX-License-Identifier: BSL-1.0
//
// Labelled images in memory, as readers of image files make them: a byte for each number, a quarter
// of the memory of a model's inputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <pipe/base/error.hpp>

namespace pp {

/// Images of one size and their labels.
///
/// shape: pixels[samples][height][width][channels], labels[samples]
struct image_set {
  int height = 0, width = 0, channels = 0;
  std::vector<std::uint8_t> pixels;
  std::vector<int> labels;
  std::vector<int> coarse_labels;    ///< of CIFAR-100; otherwise none
  std::vector<std::string> classes;  ///< names by label, where the files have them

  /// Number of images.
  std::size_t size() const { return labels.size(); }
  /// Numbers of an image.
  std::size_t image_size() const { return std::size_t(height) * width * channels; }

  /// (pixel / 255 - mean[channel]) / deviation[channel], for all images: the inputs of a data set.
  /// One mean and one deviation serve all channels.
  ///
  /// throws: data_error for pixels of another size, other numbers of means and deviations, or a
  ///         deviation that is not above 0
  template <class T = float>
  std::vector<T> numbers(std::span<float const> mean = {},
                         std::span<float const> deviation = {}) const {
    std::size_t const c = std::size_t(channels);
    if (pixels.size() != size() * image_size())
      throw data_error("image_set: " + std::to_string(size()) + " images of " +
                       std::to_string(height) + " x " + std::to_string(width) + " x " +
                       std::to_string(channels) + " have " + std::to_string(size() * image_size()) +
                       " numbers, got " + std::to_string(pixels.size()) +
                       ": crop or pad images of other extents");
    for (std::size_t const given : {mean.size(), deviation.size()})
      if (given > 1 && given != c)
        throw data_error("image_set: expected a mean and a deviation for each of " +
                         std::to_string(c) + " channels, got " + std::to_string(given));
    for (float const d : deviation)
      if (!(d > 0)) throw data_error("image_set: a deviation is not above 0");
    auto const of = [](std::span<float const> all, std::size_t k, float otherwise) {
      return all.empty() ? otherwise : all[all.size() == 1 ? 0 : k];
    };
    std::vector<T> scaled(256 * c), all(pixels.size());  // by value and channel
    for (std::size_t i = 0; i < scaled.size(); ++i)
      scaled[i] =
          T((double(i / c) / 255 - double(of(mean, i % c, 0))) / double(of(deviation, i % c, 1)));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = scaled[pixels[i] * c + i % c];
    return all;
  }
};

}  // namespace pp
