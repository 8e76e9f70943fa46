// SPDX-License-Identifier: BSL-1.0
//
// Arrays of NumPy's files: versions 1.0, 2.0 and 3.0 of the format npy, in either byte order, in C
// or Fortran order. Arrays of Python objects, which are programs that a reader would run, are
// refused, as are structures and complex numbers.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/data/number_array.hpp>
#include <pipe/io/file_bytes.hpp>

namespace pp {

namespace detail {

/// The header of an npy file: a literal of a Python dictionary with the keys descr, fortran_order
/// and shape in any order.
class npy_header {
 public:
  stored_type type{};
  bool is_big_endian = false, is_fortran = false;
  std::vector<std::size_t> shape;

  /// throws: data_error
  npy_header(std::string const& path, std::string_view text) : path_(path), text_(text) {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string_view const key = string();
      expect(':');
      bool* const has = key == "descr"           ? &has_descr
                        : key == "fortran_order" ? &has_order
                        : key == "shape"         ? &has_shape
                                                 : nullptr;
      if (has == nullptr || *has) refuse("descr, fortran_order and shape as keys, each once");
      *has = true;
      if (key == "descr")
        read_type(string());
      else if (key == "shape")
        read_shape();
      else
        is_fortran = truth();
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size()) refuse("nothing after the dictionary");
    if (!has_descr || !has_order || !has_shape) refuse("descr, fortran_order and shape");
  }

 private:
  /// Throws data_error that names the current byte, the first that is not as expected.
  [[noreturn]] void refuse(std::string const& expected) const {
    throw data_error("'" + path_ + "': byte " + std::to_string(at_) +
                     " of the dictionary: expected " + expected + ", found " +
                     (at_ < text_.size() ? in_quotes(text_.substr(at_, 12)) : "the end"));
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r\f").find(text_[at_]) != text_.npos)
      ++at_;
  }
  /// Skips white space, and reads the next character if it is c. Returns whether it is.
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) refuse(std::string("'") + c + "'");
  }
  /// Reads a text in quotes of either kind. An escape can only be in a type that is refused anyway.
  std::string_view string() {
    skip_space();
    char const quote = at_ < text_.size() ? text_[at_] : ' ';
    std::size_t const end = quote == '\'' || quote == '"' ? text_.find(quote, at_ + 1) : text_.npos;
    if (end == text_.npos) refuse("a text in quotes");
    std::string_view const found = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return found;
  }
  bool truth() {
    skip_space();
    for (bool const value : {true, false})
      if (std::string_view const word = value ? "True" : "False";
          text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    refuse("True or False");
  }
  /// Reads a tuple of extents: (), (3,), (2, 3) or (2, 3,).
  void read_shape() {
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::size_t const begin = at_;
      std::size_t extent = 0;
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (extent > (std::size_t(1) << 62) / 10) refuse("an extent below 2^62");
        extent = 10 * extent + std::size_t(text_[at_] - '0');
      }
      if (begin == at_) refuse("an extent");
      if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // as Python 2 wrote numbers
      if (shape.size() == 64) refuse("64 extents at most");
      shape.push_back(extent);
      if (accept(',')) continue;
      if (shape.size() == 1) refuse("a comma after the only extent");
      expect(')');
      break;
    }
  }
  /// Reads a type: a byte order, or nothing for the byte order of this machine; then a letter for
  /// the kind and the bytes of an element, or NumPy's letter for both, or NumPy's name.
  void read_type(std::string_view descr) {
    struct known {
      std::string_view code;
      stored_type type;
    };
    using enum stored_type;
    // C's long is left out: its size depends on the machine that wrote the file.
    static constexpr known codes[] = {
        {"f8", f64}, {"f4", f32}, {"f2", f16}, {"i8", i64},    {"i4", i32}, {"i2", i16},
        {"i1", i8},  {"u8", u64}, {"u4", u32}, {"u2", u16},    {"u1", u8},  {"b1", boolean},
        {"d", f64},  {"f", f32},  {"e", f16},  {"q", i64},     {"h", i16},  {"b", i8},
        {"Q", u64},  {"H", u16},  {"B", u8},   {"?", boolean}, {"i", i32},  {"I", u32}};
    static constexpr known names[] = {
        {"float64", f64}, {"float32", f32}, {"float16", f16}, {"int64", i64},
        {"int32", i32},   {"int16", i16},   {"int8", i8},     {"uint64", u64},
        {"uint32", u32},  {"uint16", u16},  {"uint8", u8},    {"double", f64},
        {"single", f32},  {"half", f16},    {"float", f64},   {"bool", boolean}};
    constexpr bool here = std::endian::native == std::endian::big;
    bool const has_order = !descr.empty() && std::string_view("<>=|").find(descr[0]) != descr.npos;
    char const order = has_order ? descr[0] : '=';
    std::string_view const code = descr.substr(has_order ? 1 : 0);
    for (known const& k : codes)
      if (k.code == code) {
        type = k.type, is_big_endian = order == '>' || (order != '<' && here);
        return;
      }
    for (known const& k : names)
      if (k.code == descr) {
        type = k.type, is_big_endian = here;
        return;
      }
    throw data_error("'" + path_ + "': the type " + in_quotes(descr) +
                     " is not one of real numbers of 16 to 64 bits, integers and booleans");
  }

  std::string const& path_;
  std::string_view text_;
  std::size_t at_ = 0;
};

/// Reorders the elements of a column-major file in row-major order.
///
/// cost: two copies of the array in memory
inline void transpose_to_rows(number_array& a) {
  std::size_t const width = std::size_t(size_of(a.type)), n = a.size();
  std::vector<std::byte> rows(a.bytes.size());
  std::vector<std::size_t> place(a.shape.size()), stride(a.shape.size());  // strides of rows
  for (std::size_t k = a.shape.size(), elements = 1; k-- > 0; elements *= a.shape[k])
    stride[k] = elements;
  for (std::size_t i = 0, to = 0; i < n; ++i) {
    for (std::size_t b = 0; b < width; ++b) rows[to * width + b] = a.bytes[i * width + b];
    for (std::size_t k = 0; k < place.size(); ++k) {  // the first index is the fastest
      to += stride[k];
      if (++place[k] < a.shape[k]) break;
      to -= stride[k] * a.shape[k];
      place[k] = 0;
    }
  }
  a.bytes = std::move(rows);
}

/// The array of an npy file with these bytes.
///
/// throws: data_error
inline number_array parse_npy(std::string const& path, std::string_view bytes) {
  constexpr std::string_view magic = "\x93NUMPY";
  if (!bytes.starts_with(magic) || bytes.size() < 8)
    throw data_error("'" + path + "' is no npy file: it does not begin with \\x93NUMPY");
  int const major = std::uint8_t(bytes[6]), minor = std::uint8_t(bytes[7]);
  if (major < 1 || major > 3 || minor != 0)
    throw data_error("'" + path + "': expected version 1.0, 2.0 or 3.0 of npy, found " +
                     std::to_string(major) + "." + std::to_string(minor));
  std::size_t const begin = major == 1 ? 10 : 12;
  std::size_t length = 0;
  for (std::size_t i = begin; i-- > 8;)
    length = length << 8 | (i < bytes.size() ? std::uint8_t(bytes[i]) : 0);
  if (bytes.size() < begin || bytes.size() - begin < length)
    throw data_error("'" + path + "': expected a header of " + std::to_string(length) +
                     " bytes, found " + std::to_string(bytes.size()) + " bytes in all");
  npy_header header(path, bytes.substr(begin, length));
  number_array a = array_in_file(path, header.type, std::move(header.shape),
                                 bytes.substr(begin + length), header.is_big_endian);
  if (a.type == stored_type::boolean)
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a.bytes[i] > std::byte(1))
        throw data_error("'" + path + "': boolean " + std::to_string(i) + " is neither 0 nor 1");
  if (header.is_fortran && a.shape.size() > 1) transpose_to_rows(a);
  return a;
}

}  // namespace detail

/// The array of an npy file, in row-major order whatever the order of the file.
///
/// throws: file_error if the file cannot be read, data_error if it violates the format or has
///         another type than reals of 16 to 64 bits, integers and booleans
inline number_array read_npy(std::string const& path) {
  return detail::parse_npy(path, detail::file_bytes(path));
}

}  // namespace pp
