// SPDX-License-Identifier: BSL-1.0
//
// Amounts of memory: literals to write them (`MemoryLimit<512_MiB>`) and the alignment that every
// planned offset keeps.
#pragma once

namespace pp {

inline namespace literals {
constexpr long operator""_KiB(unsigned long long n) { return long(n) << 10; }
constexpr long operator""_MiB(unsigned long long n) { return long(n) << 20; }
constexpr long operator""_GiB(unsigned long long n) { return long(n) << 30; }
}  // namespace literals

/// One cache line and one AVX-512 vector: values of the plan begin at multiples of it.
inline constexpr long alignment = 64;

/// law: result >= bytes, a multiple of `alignment`, and less than bytes + alignment.
constexpr long align_up(long bytes) { return (bytes + alignment - 1) / alignment * alignment; }

/// The same, counted in numbers of type T.
template <class T>
constexpr long padded(long elements) {
  return align_up(elements * long(sizeof(T))) / long(sizeof(T));
}

}  // namespace pp
