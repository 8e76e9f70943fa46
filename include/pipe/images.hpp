// SPDX-License-Identifier: BSL-1.0
//
// Pictures as PNG and JPEG, and folders of them with a folder for each class. Included separately:
// needs libpng and libjpeg-turbo's TurboJPEG (Debian's libpng-dev and libturbojpeg0-dev; link with
// -lpng -lturbojpeg).
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <png.h>
#include <sys/stat.h>
#include <turbojpeg.h>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/data/image_set.hpp>
#include <pipe/io/file_bytes.hpp>
#include <pipe/io/folder_reader.hpp>

namespace pp {

/// A picture in red, green and blue.
///
/// shape: pixels[height][width][3]
struct picture {
  int height = 0, width = 0;
  std::vector<std::uint8_t> pixels;
};

namespace detail {

/// Most pixels of a picture.
inline constexpr std::uint64_t most_pixels = std::uint64_t(1) << 28;

/// A picture of these extents, whose pixels are to come, and the values that a file has for them,
/// `channels` of each pixel.
///
/// throws: data_error without pixels, for more than there may be, or more than `most`: what the
///         bytes of the file can stand for, as a small one can say that it has 2^62 of them;
///         file_error without memory
inline picture empty_picture(std::string const& path, std::uint64_t height, std::uint64_t width,
                             int channels, std::uint64_t most) {
  if (height == 0 || width == 0) throw data_error("'" + path + "' is cut or damaged: no pixels");
  std::string const extents = std::to_string(height) + " x " + std::to_string(width);
  if (height > most_pixels / width)
    throw data_error("'" + path + "': expected at most 2^28 pixels, found " + extents);
  if (height * width > most)
    throw data_error("'" + path + "' is cut: it has too few bytes for " + extents + " pixels");
  try {
    std::size_t const size = std::size_t(height * width) * std::size_t(channels);
    return {int(height), int(width), std::vector<std::uint8_t>(size)};
  } catch (std::bad_alloc const&) {
    throw file_error("cannot read '" + path + "': no memory for " + extents + " pixels");
  }
}

/// The most pixels that a PNG file of `bytes` can have: zlib makes at most 1032 bytes of one, and
/// the header has the bits of a number and, by the kind, the numbers of a pixel.
inline std::uint64_t most_pixels_of_png(std::string_view bytes) {
  constexpr int numbers[] = {1, 1, 3, 1, 2, 1, 4};  // 2: colours, 4: with an alpha, 3: of a palette
  auto const kind = std::uint8_t(bytes[25]);
  int const bits = std::uint8_t(bytes[24]) * numbers[kind < 7 ? kind : 0];
  return std::uint64_t(bytes.size()) * 1032 * 8 / std::uint64_t(std::max(bits, 1));
}

/// The picture in the bytes of a PNG file. Numbers of 16 bits are of sRGB, as those of 8 bits.
///
/// throws: data_error with libpng's reason
inline picture decode_png(std::string const& path, std::string_view bytes) {
  struct image : ::png_image {
    image() : ::png_image() { version = PNG_IMAGE_VERSION; }
    ~image() { ::png_image_free(this); }
  } source;
  auto const refuse = [&] {
    throw data_error("'" + path + "' is no PNG that can be read: " + source.message);
  };
  // A warning is about metadata, or about data that are incomplete: these are refused by libpng.
  if (::png_image_begin_read_from_memory(&source, bytes.data(), bytes.size()) == 0) refuse();
  source.format = PNG_FORMAT_RGB;
  source.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;  // otherwise they are taken for linear ones
  picture p = empty_picture(path, source.height, source.width, 3, most_pixels_of_png(bytes));
  ::png_color const background{255, 255, 255};  // of transparent pixels
  if (::png_image_finish_read(&source, &background, p.pixels.data(), 0, nullptr) == 0) refuse();
  return p;
}

/// Whether the frame of a JPEG file is arithmetic-coded.
inline bool has_arithmetic_coding(std::string_view bytes) {
  auto const at = [&](std::size_t i) { return unsigned(std::uint8_t(bytes[i])); };
  for (std::size_t i = 2; i + 3 < bytes.size() && at(i) == 0xFF;) {
    unsigned const marker = at(i + 1);
    bool const is_table = marker == 0xC4 || marker == 0xC8 || marker == 0xCC;
    if (marker >= 0xC0 && marker <= 0xCF && !is_table) return marker > 0xC8;
    i += marker == 0xFF ? 1 : 2 + (at(i + 2) << 8 | at(i + 3));
  }
  return false;
}

/// The picture in the bytes of a JPEG file. Four colours of print are taken as Adobe's programs
/// write them, 255 for no ink.
///
/// throws: data_error with TurboJPEG's reason
inline picture decode_jpeg(std::string const& path, std::string_view bytes) {
  struct end {
    void operator()(void* decoder) const { ::tjDestroy(decoder); }
  };
  std::unique_ptr<void, end> const decoder(::tjInitDecompress());
  auto const* const from = reinterpret_cast<unsigned char const*>(bytes.data());
  auto const refuse = [&] {
    throw data_error("'" + path +
                     "' is no JPEG that can be read: " + ::tjGetErrorStr2(decoder.get()));
  };
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (::tjDecompressHeader3(decoder.get(), from, bytes.size(), &width, &height, &subsampling,
                            &colours) != 0)
    refuse();
  bool const is_print = colours == TJCS_CMYK || colours == TJCS_YCCK;
  // A block of 64 pixels takes at least a bit: 512 pixels a byte, and here twice as many. With
  // arithmetic coding there is no such bound.
  std::uint64_t const most = std::uint64_t(bytes.size()) * 1024,
                      high = std::uint64_t(std::max(height, 0)),
                      wide = std::uint64_t(std::max(width, 0));
  if (high * wide > most && has_arithmetic_coding(bytes))
    throw data_error("'" + path + "' is no JPEG that can be read: with arithmetic coding " +
                     std::to_string(bytes.size()) + " bytes have at most " + std::to_string(most) +
                     " pixels here, found " + std::to_string(height) + " x " +
                     std::to_string(width));
  picture p = empty_picture(path, high, wide, is_print ? 4 : 3, most);
  // A warning is missing data: a picture that is half grey. A progressive one has 500 scans at
  // most: each takes time for all pixels, and as good as no bytes.
  if (::tjDecompress2(decoder.get(), from, bytes.size(), p.pixels.data(), width, 0, height,
                      is_print ? TJPF_CMYK : TJPF_RGB,
                      TJFLAG_STOPONWARNING | TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) != 0)
    refuse();
  if (is_print) {
    std::size_t const count = p.pixels.size() / 4;
    for (std::size_t i = 0; i < count; ++i)  // light through an ink and black
      for (std::size_t c = 0; c < 3; ++c)
        p.pixels[3 * i + c] = std::uint8_t((p.pixels[4 * i + c] * p.pixels[4 * i + 3] + 127) / 255);
    p.pixels.resize(3 * count);
  }
  return p;
}

/// Weighted means along one axis of `lines` lines of `from` pixels, of which [begin, end) become
/// `to` pixels: linear interpolation where that enlarges, a mean over the pixels below a triangle
/// where it reduces.
///
/// shape: read(line, i, channel) -> write(line, k, channel)
template <class Read, class Write>
void resample_lines(int lines, int from, double begin, double end, int to, Read const& read,
                    Write const& write) {
  double const scale = (end - begin) / to, reach = scale > 1 ? scale : 1;
  for (int k = 0; k < to; ++k) {
    double const centre = begin + (k + 0.5) * scale - 0.5;
    int const first = std::max(0, int(std::ceil(centre - reach))),
              last = std::min(from - 1, int(std::floor(centre + reach)));
    std::vector<double> weights;
    double sum = 0;
    for (int i = first; i <= last; ++i)
      sum += weights.emplace_back(std::max(0.0, 1 - std::abs(i - centre) / reach));
    for (int line = 0; line < lines; ++line)
      for (int c = 0; c < 3; ++c) {
        double mean = 0;
        for (int i = first; i <= last; ++i)
          mean += weights[std::size_t(i - first)] * read(line, i, c);
        write(line, k, c, mean / sum);
      }
  }
}

}  // namespace detail

/// The picture in a PNG or JPEG file, by its first bytes. Grey, palettes and the four colours of
/// print become red, green and blue; transparent pixels are before white, with light as the mean of
/// both. The gamma of a PNG file is applied; how a camera was held (EXIF) and profiles are not.
///
/// throws: file_error if it cannot be read, or without memory; data_error if it is neither, is
///         damaged or cut, or has more than 2^28 pixels or 500 scans
inline picture read_picture(std::string const& path) {
  std::string const bytes = detail::file_bytes(path);
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return detail::decode_png(path, bytes);
  if (bytes.starts_with("\xFF\xD8\xFF")) return detail::decode_jpeg(path, bytes);
  throw data_error("'" + path + "' is neither a PNG nor a JPEG file");
}

/// The largest part in the middle of a picture that has the proportions of height x width, in that
/// size: by bilinear interpolation, and by means where it becomes smaller.
inline picture fit_picture(picture const& from, int height, int width) {
  if (height < 1 || width < 1)
    throw data_error("fit_picture: expected a height and a width of at least 1, got " +
                     std::to_string(height) + " and " + std::to_string(width));
  if (from.height == height && from.width == width) return from;
  double const scale = std::min(double(from.height) / height, double(from.width) / width),
               top = (from.height - scale * height) / 2, left = (from.width - scale * width) / 2;
  auto const place = [](int y, int x, int c, int columns) {
    return (std::size_t(y) * columns + x) * 3 + c;
  };
  // The rows that are read: those of the part, and as far as a mean or an interpolation reaches.
  double const reach = std::max(scale, 1.0) + 1;
  int const begin = std::max(0, int(top - reach)),
            end = std::min(from.height, int(std::ceil(from.height - top + reach)));
  std::vector<double> rows(std::size_t(end - begin) * width * 3);
  detail::resample_lines(
      end - begin, from.width, left, left + scale * width, width,
      [&](int y, int x, int c) { return double(from.pixels[place(begin + y, x, c, from.width)]); },
      [&](int y, int x, int c, double value) { rows[place(y, x, c, width)] = value; });
  picture to{height, width, std::vector<std::uint8_t>(std::size_t(height) * width * 3)};
  detail::resample_lines(
      width, from.height, top, top + scale * height, height,
      [&](int x, int y, int c) { return rows[place(y - begin, x, c, width)]; },
      [&](int x, int y, int c, double value) {
        to.pixels[place(y, x, c, width)] = std::uint8_t(std::lround(value));
      });
  return to;
}

namespace detail {

/// Whether the ending of a name says that the file is a picture.
inline bool is_named_as_picture(std::string name) {
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  for (std::string_view const ending : {".png", ".jpg", ".jpeg"})
    if (name.ends_with(ending)) return true;
  return false;
}

}  // namespace detail

/// All pictures below a folder that has a folder for each class, each fit_picture() to one size.
/// Classes are numbered, and files read, in the order of their names. Files are pictures if their
/// names end in .png, .jpg or .jpeg; folders in folders of classes are searched, too. What begins
/// with a dot, and what archives and file managers add (__MACOSX, Thumbs.db ...), is neither class
/// nor picture.
///
/// throws: file_error if the folder cannot be listed; data_error without a class, for a class
///         without a picture, and as read_picture
inline image_set read_image_folder(std::string const& folder, int height, int width) {
  auto const check = [&](int reason) {
    if (reason != 0)
      throw file_error("cannot list the folder '" + folder + "': " + std::strerror(reason));
  };
  std::string const prefix = folder.empty() || folder.ends_with('/') ? folder : folder + '/';
  std::vector<std::string> classes;
  detail::folder_reader all(folder);
  while (dirent const* const entry = all.next())
    if (struct stat there{}; !detail::is_hidden(entry->d_name) &&
                             ::stat((prefix + entry->d_name).c_str(), &there) == 0 &&
                             S_ISDIR(there.st_mode))
      classes.emplace_back(entry->d_name);
  check(all.error());
  if (classes.empty())
    throw data_error("'" + folder + "': expected a folder of pictures for each class, found none");
  std::sort(classes.begin(), classes.end());
  image_set set;
  set.height = height, set.width = width, set.channels = 3;
  for (std::string const& name : classes) {
    std::vector<std::string> files;
    check(detail::see_files_below(prefix + name, detail::files_seen::not_hidden,
                                  [&](std::string const& file) {
                                    if (detail::is_named_as_picture(file)) files.push_back(file);
                                    return false;
                                  }));
    if (files.empty()) throw data_error("'" + prefix + name + "' has no picture");
    std::sort(files.begin(), files.end());
    for (std::string const& file : files) {
      picture const p = fit_picture(read_picture(file), height, width);
      set.pixels.insert(set.pixels.end(), p.pixels.begin(), p.pixels.end());
      set.labels.push_back(int(set.classes.size()));
    }
    set.classes.push_back(name);
  }
  return set;
}

}  // namespace pp
