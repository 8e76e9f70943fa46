// SPDX-License-Identifier: BSL-1.0
//
// The binary files of CIFAR-10 and CIFAR-100: records of labels and an image of 32 x 32, its red,
// green and blue plane. The files have no header, so only the size and the range of labels tell
// that a file is in this format.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/data/image_set.hpp>
#include <pipe/io/file_bytes.hpp>

namespace pp {

namespace detail {

/// Appends the records of a file: a coarse label, if there are such classes, a label, the planes.
///
/// throws: data_error for part of a record or a label out of range
inline void append_cifar(image_set& set, std::string const& path, std::string_view bytes,
                         int coarse_classes, int classes) {
  constexpr std::size_t plane = 32 * 32;
  std::size_t const labels = coarse_classes > 0 ? 2 : 1, record = labels + 3 * plane;
  if (bytes.empty() || bytes.size() % record != 0)
    throw data_error("'" + path + "': expected records of " + std::to_string(record) +
                     " bytes, found " + std::to_string(bytes.size()) + " bytes in all");
  set.height = set.width = 32, set.channels = 3;
  for (std::size_t at = 0; at < bytes.size(); at += record) {
    auto const label = [&](std::size_t i, int below) {
      int const found = std::uint8_t(bytes[at + i]);
      if (found >= below)
        throw data_error("'" + path + "': image " + std::to_string(at / record) + " has label " +
                         std::to_string(found) + ", expected one below " + std::to_string(below));
      return found;
    };
    if (coarse_classes > 0) set.coarse_labels.push_back(label(0, coarse_classes));
    set.labels.push_back(label(labels - 1, classes));
    for (std::size_t i = 0; i < 3 * plane; ++i)
      set.pixels.push_back(std::uint8_t(bytes[at + labels + i % 3 * plane + i / 3]));
  }
}

/// The images of all files, one file after another.
inline image_set read_cifar(std::vector<std::string> const& paths, int coarse_classes,
                            int classes) {
  if (paths.empty()) throw data_error("read_cifar: expected at least one file");
  image_set set;
  for (std::string const& path : paths)
    append_cifar(set, path, file_bytes(path), coarse_classes, classes);
  return set;
}

}  // namespace detail

/// The images of files of CIFAR-10, as data_batch_1.bin: records of 1 + 3072 bytes.
///
/// throws: file_error if a file cannot be read, data_error for part of a record or a label above 9
inline image_set read_cifar10(std::vector<std::string> const& paths) {
  return detail::read_cifar(paths, 0, 10);
}

/// The images of files of CIFAR-100, train.bin and test.bin: records of 2 + 3072 bytes. Labels are
/// the fine labels, below 100; coarse labels are below 20.
///
/// throws: file_error if a file cannot be read, data_error for part of a record or a label out of
///         range
inline image_set read_cifar100(std::vector<std::string> const& paths) {
  return detail::read_cifar(paths, 20, 100);
}

}  // namespace pp
