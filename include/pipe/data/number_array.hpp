// SPDX-License-Identifier: BSL-1.0
//
// An array of numbers as files of other programs have them: a type, extents, and bytes.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/real_text.hpp>
#include <pipe/weights/stored_type.hpp>

namespace pp {

/// Numbers of one type in row-major order: the last index is the fastest.
struct number_array {
  std::string path;                ///< of the file, for messages
  files::stored_type type{};       ///< a real or an integer type, or boolean
  std::vector<std::size_t> shape;  ///< extents; none: a single number
  std::vector<std::byte> bytes;    ///< little-endian

  /// Number of elements.
  std::size_t size() const { return bytes.size() / std::size_t(size_of(type)); }

  /// All numbers as T: float, double or int.
  ///
  /// throws: data_error, with the index, for a number that an int cannot hold, where T is int
  template <class T>
  std::vector<T> numbers() const {
    std::vector<T> all(size());
    switch (type) {
      case files::stored_type::i64: return read<std::int64_t>(all);
      case files::stored_type::i32: return read<std::int32_t>(all);
      case files::stored_type::i16: return read<std::int16_t>(all);
      case files::stored_type::i8: return read<std::int8_t>(all);
      case files::stored_type::u64: return read<std::uint64_t>(all);
      case files::stored_type::u32: return read<std::uint32_t>(all);
      case files::stored_type::u16: return read<std::uint16_t>(all);
      case files::stored_type::u8:
      case files::stored_type::boolean: return read<std::uint8_t>(all);
      case files::stored_type::f64:
      case files::stored_type::f32:
      case files::stored_type::f16:
      case files::stored_type::bf16: return read_reals(all);
      case files::stored_type::c64:
      case files::stored_type::f8_e4m3:
      case files::stored_type::f8_e5m2:
      case files::stored_type::f8_e8m0:
      case files::stored_type::f8_e4m3fnuz:
      case files::stored_type::f8_e5m2fnuz:
      case files::stored_type::other: break;
    }
    throw data_error("'" + path + "': numbers of type " + name_of(type) + " cannot be converted");
  }

 private:
  /// Reads integers: the bits of a number are those of its unsigned type.
  template <class Stored, class T>
  std::vector<T> read(std::vector<T>& all) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::make_unsigned_t<Stored> const bits =
          detail::little_endian<std::make_unsigned_t<Stored>>(bytes.data() + i * sizeof(Stored));
      Stored const number = Stored(bits);
      if constexpr (std::is_same_v<T, int>)
        if (!std::in_range<int>(number)) refuse(i, std::to_string(number));
      all[i] = T(number);
    }
    return std::move(all);
  }
  /// Reads real numbers; an int holds those without a fraction.
  template <class T>
  std::vector<T> read_reals(std::vector<T>& all) const {
    if constexpr (std::is_same_v<T, int>) {
      std::vector<double> reals(all.size());
      decode(type, bytes.data(), std::span(reals));
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!(std::abs(reals[i]) < 2147483648.0) || std::trunc(reals[i]) != reals[i])
          refuse(i, std::string(detail::real_text(reals[i], 9)));
        all[i] = int(reals[i]);
      }
    } else {
      decode(type, bytes.data(), std::span(all));
    }
    return std::move(all);
  }
  [[noreturn]] void refuse(std::size_t i, std::string const& number) const {
    throw data_error("'" + path + "': number " + std::to_string(i) + " is " + number +
                     ", expected an int");
  }
};

namespace detail {

/// The number of elements of some extents, at most the largest size_t.
inline std::size_t elements_of(std::span<std::size_t const> shape) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  std::size_t product = 1;
  for (std::size_t const extent : shape)
    if (extent == 0) return 0;
  for (std::size_t const extent : shape)
    product = product > most / extent ? most : product * extent;
  return product;
}

/// The array whose elements are `data`: the bytes of a file from byte `begin` to the end.
///
/// throws: data_error unless the data have as many bytes as the shape needs
inline number_array array_in_file(std::string const& path, stored_type type,
                                  std::vector<std::size_t> shape, std::string_view data,
                                  bool is_big_endian) {
  std::size_t const width = std::size_t(size_of(type)), elements = elements_of(shape);
  if (data.size() % width != 0 || data.size() / width != elements) {
    std::string product;
    for (std::size_t const extent : shape)
      product += (product.empty() ? "" : " x ") + std::to_string(extent);
    throw data_error("'" + path + "': expected " + (product.empty() ? "1" : product) +
                     " numbers of " + std::to_string(width) + " bytes after the header, found " +
                     std::to_string(data.size()) + " bytes");
  }
  number_array a{path, type, std::move(shape), std::vector<std::byte>(data.size())};
  for (std::size_t i = 0; i < data.size(); ++i)
    a.bytes[is_big_endian ? i / width * width + (width - 1 - i % width) : i] = std::byte(data[i]);
  return a;
}

}  // namespace detail

}  // namespace pp
