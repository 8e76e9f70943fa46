// SPDX-License-Identifier: BSL-1.0
//
// Amounts of memory: literals to write them (`MemoryLimit<512_MiB>`), and the alignment of planned
// offsets.
#pragma once

namespace pp {

inline namespace literals {
constexpr long operator""_KiB(unsigned long long n) { return long(n) << 10; }
constexpr long operator""_MiB(unsigned long long n) { return long(n) << 20; }
constexpr long operator""_GiB(unsigned long long n) { return long(n) << 30; }
}  // namespace literals

namespace detail {

/// Bytes to which every planned value is aligned: one cache line, and one AVX-512 vector.
inline constexpr long alignment = 64;

/// Bytes rounded up to a multiple of `alignment`.
///
/// law: bytes <= result < bytes + alignment
constexpr long align_up(long bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// Numbers of type T, rounded up so that the next value is aligned.
template <class T>
constexpr long padded(long elements) {
  return align_up(elements * long(sizeof(T))) / long(sizeof(T));
}

}  // namespace detail

}  // namespace pp
