// SPDX-License-Identifier: BSL-1.0
//
// Files of the idx format, in which MNIST and its relatives are distributed.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/data/image_set.hpp>
#include <pipe/data/number_array.hpp>
#include <pipe/io/file_bytes.hpp>

namespace pp {

namespace detail {

/// The array of an idx file with these bytes: 0, 0, type, rank, extents of 32 bits, numbers, all
/// big-endian.
///
/// throws: data_error
inline number_array parse_idx(std::string const& path, std::string_view bytes) {
  auto const byte = [&](std::size_t i) { return std::uint8_t(bytes[i]); };
  if (bytes.size() < 4 || byte(0) != 0 || byte(1) != 0)
    throw data_error("'" + path + "' is no idx file: expected two zero bytes, a type and a rank");
  stored_type type{};
  switch (byte(2)) {
    case 0x08: type = stored_type::u8; break;
    case 0x09: type = stored_type::i8; break;
    case 0x0B: type = stored_type::i16; break;
    case 0x0C: type = stored_type::i32; break;
    case 0x0D: type = stored_type::f32; break;
    case 0x0E: type = stored_type::f64; break;
    default:
      throw data_error("'" + path + "': expected a type of idx (8, 9, 11, 12, 13, 14), found " +
                       std::to_string(byte(2)));
  }
  std::size_t const rank = byte(3), begin = 4 + 4 * rank;
  if (bytes.size() < begin)
    throw data_error("'" + path + "': expected " + std::to_string(rank) + " extents, found " +
                     std::to_string(bytes.size()) + " bytes in all");
  std::vector<std::size_t> shape(rank);
  for (std::size_t i = 4; i < begin; ++i) shape[(i - 4) / 4] = shape[(i - 4) / 4] << 8 | byte(i);
  return array_in_file(path, type, std::move(shape), bytes.substr(begin), true);
}

}  // namespace detail

/// The array of an idx file, not compressed.
///
/// throws: file_error if the file cannot be read, data_error if it violates the format
inline number_array read_idx(std::string const& path) {
  return detail::parse_idx(path, detail::file_bytes(path));
}

/// Images and labels of MNIST, or of a data set in the same form: bytes of shape (samples, height,
/// width) or (samples, height, width, channels), and (samples).
///
/// throws: as read_idx; data_error for other types or shapes, without images, if the numbers of
///         samples differ, or for a label below 0
inline image_set read_mnist(std::string const& images_path, std::string const& labels_path) {
  number_array images = read_idx(images_path), labels = read_idx(labels_path);
  std::size_t const rank = images.shape.size();
  if (images.type != files::stored_type::u8 || rank < 3 || rank > 4)
    throw data_error("'" + images_path + "': expected bytes with 3 or 4 extents, found " +
                     name_of(images.type) + " with " + std::to_string(rank));
  if (labels.shape.size() != 1 || labels.shape[0] != images.shape[0])
    throw data_error("'" + labels_path + "': expected " + std::to_string(images.shape[0]) +
                     " labels, found " + std::to_string(labels.size()));
  if (images.shape[0] == 0) throw data_error("'" + images_path + "' has no images");
  for (std::size_t i = 1; i < rank; ++i)
    if (images.shape[i] == 0 || images.shape[i] > 65'536)
      throw data_error("'" + images_path + "': expected extents from 1 to 65536, found " +
                       std::to_string(images.shape[i]));
  image_set set;
  set.height = int(images.shape[1]), set.width = int(images.shape[2]);
  set.channels = rank == 4 ? int(images.shape[3]) : 1;
  set.pixels.reserve(images.bytes.size());
  for (std::byte const b : images.bytes) set.pixels.push_back(std::uint8_t(b));
  set.labels = labels.numbers<int>();
  for (std::size_t i = 0; i < set.labels.size(); ++i)
    if (set.labels[i] < 0)
      throw data_error("'" + labels_path + "': image " + std::to_string(i) + " has label " +
                       std::to_string(set.labels[i]) + ", expected 0 or more");
  return set;
}

}  // namespace pp
