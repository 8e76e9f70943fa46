// SPDX-License-Identifier: BSL-1.0
//
// The number types of safetensors files under their names in the format, and conversion of the real
// types to and from a model's element type. Bytes are little-endian on every machine and need no
// alignment.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include <pipe/base/half.hpp>
#include <pipe/base/libm.hpp>

namespace pp {

namespace files {

/// Number types of safetensors files.
enum class stored_type : unsigned char {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean,
  c64,
  f8_e4m3,
  f8_e5m2,
  f8_e8m0,
  f8_e4m3fnuz,
  f8_e5m2fnuz,
  other  ///< an unknown type, known by its name in the file only
};

}  // namespace files

namespace detail {

using namespace files;

inline constexpr int stored_types = 19;  ///< number of known types

/// Spelling and size of a stored type; the table below is in the order of the enum.
struct stored_type_properties {
  char const* name;
  int bytes;  ///< size of an element
};

/// Name and size of each type, by stored_type; the last entry is that of `other`, whose size is
/// unknown.
inline constexpr stored_type_properties properties_of_types[stored_types + 1] = {
    {"F64", 8},     {"F32", 4},     {"F16", 2},         {"BF16", 2},        {"I64", 8},
    {"I32", 4},     {"I16", 2},     {"I8", 1},          {"U64", 8},         {"U32", 4},
    {"U16", 2},     {"U8", 1},      {"BOOL", 1},        {"C64", 8},         {"F8_E4M3", 1},
    {"F8_E5M2", 1}, {"F8_E8M0", 1}, {"F8_E4M3FNUZ", 1}, {"F8_E5M2FNUZ", 1}, {"other", 1}};

}  // namespace detail

namespace files {

/// The name of a type in files.
constexpr char const* name_of(stored_type t) { return detail::properties_of_types[int(t)].name; }
/// Bytes of a number in files; 1 for the unknown type `other`.
constexpr int size_of(stored_type t) { return detail::properties_of_types[int(t)].bytes; }

/// Whether `decode` and `encode` support a type.
constexpr bool is_real(stored_type t) { return t <= stored_type::bf16; }

}  // namespace files

namespace detail {

/// The type with a name in files; `other` for an unknown name.
constexpr stored_type stored_type_named(std::string_view name) {
  for (int t = 0; t < stored_types; ++t)
    if (name == name_of(stored_type(t))) return stored_type(t);
  return stored_type::other;
}

/// The stored type that represents T exactly.
template <class T>
constexpr stored_type stored_type_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>);
  return std::is_same_v<T, float> ? stored_type::f32 : stored_type::f64;
}

/// Reads a little-endian integer without alignment. Little-endian machines copy the bytes, which is
/// much faster.
template <class Bits>
Bits little_endian(std::byte const* from) {
  Bits bits = 0;
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(&bits, from, sizeof bits);
  else
    for (std::size_t i = 0; i < sizeof bits; ++i) bits = Bits(bits | Bits(from[i]) << 8 * i);
  return bits;
}
/// Writes an integer as little-endian bytes without alignment.
template <class Bits>
void put_little_endian(Bits bits, std::byte* to) {
  if constexpr (std::endian::native == std::endian::little)
    std::memcpy(to, &bits, sizeof bits);
  else
    for (std::size_t i = 0; i < sizeof bits; ++i) to[i] = std::byte(bits >> 8 * i);
}

/// Calls work(number_at), where number_at(bytes) reads one number of real type t.
template <class Work>
auto with_reader_of(stored_type t, Work work) {
  if (t == stored_type::f64)
    return work([](std::byte const* at) {
      return std::bit_cast<double>(little_endian<std::uint64_t>(at));
    });
  if (t == stored_type::f32)
    return work(
        [](std::byte const* at) { return std::bit_cast<float>(little_endian<std::uint32_t>(at)); });
  if (t == stored_type::f16)
    return work(
        [](std::byte const* at) { return float_from_f16(little_endian<std::uint16_t>(at)); });
  return work(
      [](std::byte const* at) { return float_from_bf16(little_endian<std::uint16_t>(at)); });
}

}  // namespace detail

namespace files {

/// Converts numbers of a real stored type to T.
///
/// shape: from[to.size() * size_of(t)] -> to[]
template <class T>
void decode(stored_type t, std::byte const* from, std::span<T> to) {
  detail::with_reader_of(t, [&, size = std::size_t(size_of(t))](auto number_at) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = T(number_at(from + i * size));
  });
}

}  // namespace files

namespace detail {

/// Converts numbers to a real stored type, each rounded once to nearest.
///
/// shape: from[] -> to[from.size() * size_of(t)]
template <class T>
void encode(stored_type t, std::span<T const> from, std::byte* to) {
  auto const write = [&](auto bits_of) {
    for (std::size_t i = 0; i < from.size(); ++i)
      put_little_endian(bits_of(from[i]), to + i * std::size_t(size_of(t)));
  };
  if (t == stored_type::f64)
    write([](T x) { return std::bit_cast<std::uint64_t>(double(x)); });
  else if (t == stored_type::f32)
    write([](T x) { return std::bit_cast<std::uint32_t>(float(x)); });
  else if (t == stored_type::f16)
    write([](T x) { return f16_from_float(float_rounded_to_odd(x)); });
  else
    write([](T x) { return bf16_from_float(float_rounded_to_odd(x)); });
}

/// Index of the first finite number that T cannot represent (it would become infinite), or -1.
template <class T>
long first_too_large(stored_type t, std::span<std::byte const> bytes) {
  if (t != stored_type::f64 || std::is_same_v<T, double>) return -1;
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    double const value = std::bit_cast<double>(little_endian<std::uint64_t>(bytes.data() + at));
    if (libm::isfinite(value) && !libm::isfinite(T(value))) return long(at / 8);
  }
  return -1;
}

}  // namespace detail

}  // namespace pp
