// SPDX-License-Identifier: BSL-1.0
//
// Vector accesses: several neighbouring elements in one access of up to 16 bytes. Elements of every
// type are floats in registers.
#pragma once

#include <cstddef>

#include <pipe/base/config.hpp>

namespace pp::cuda {

/// Neighbouring elements that are read or written in one access.
template <class T, int Count>
struct alignas(sizeof(T) * Count) packed {
  T item[Count];
};

/// Elements of T in the widest access, of at most 16 bytes, that divides rows of `columns`
/// elements, so that every row begins with one.
template <class T>
constexpr int access_width(int columns) {
  int width = 16 / int(sizeof(T));
  while (columns % width != 0) width /= 2;
  return width;
}

/// v rounded to T, as memory would hold it.
template <class T>
PIPE_HD PIPE_INLINE float as_stored(float v) {
  return float(T(v));
}

/// *to = p in one access, spelled out: nvcc takes a structure apart, and does not always put its
/// stores together again.
template <class T, int Count>
PIPE_HD PIPE_INLINE void store(packed<T, Count>* to, packed<T, Count> const& p) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof p == 16) {
    auto const w = __builtin_bit_cast(packed<unsigned, 4>, p);
    asm volatile("st.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(w.item[0]), "r"(w.item[1]),
                 "r"(w.item[2]), "r"(w.item[3])
                 : "memory");
  } else if constexpr (sizeof p == 8) {
    auto const w = __builtin_bit_cast(packed<unsigned, 2>, p);
    asm volatile("st.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(w.item[0]), "r"(w.item[1]) : "memory");
  } else if constexpr (sizeof p == 4) {
    asm volatile("st.b32 [%0], %1;" ::"l"(to), "r"(__builtin_bit_cast(unsigned, p)) : "memory");
  } else
#endif
    *to = p;
}

/// Count neighbouring elements to registers, as floats, in accesses of up to 16 bytes.
///
/// needs: Count is a power of two and `from` a multiple of Count elements behind an aligned address
template <int Count, class T>
PIPE_HD PIPE_INLINE void load(T const* from, float (&to)[Count]) {
  constexpr int most = 16 / int(sizeof(T)), each = Count < most ? Count : most;
  PIPE_UNROLL
  for (int i = 0; i < Count; i += each) {
    packed<T, each> const p = *reinterpret_cast<packed<T, each> const*>(from + i);
    PIPE_UNROLL
    for (int k = 0; k < each; ++k) to[i + k] = float(p.item[k]);
  }
}
/// Count floats to memory, rounded to T; needs: as load.
template <int Count, class T>
PIPE_HD PIPE_INLINE void save(T* to, float const (&from)[Count]) {
  constexpr int most = 16 / int(sizeof(T)), each = Count < most ? Count : most;
  PIPE_UNROLL
  for (int i = 0; i < Count; i += each) {
    packed<T, each> p;
    PIPE_UNROLL
    for (int k = 0; k < each; ++k) p.item[k] = T(from[i + k]);
    store(reinterpret_cast<packed<T, each>*>(to + i), p);
  }
}

}  // namespace pp::cuda
