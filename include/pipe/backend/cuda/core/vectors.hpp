// SPDX-License-Identifier: BSL-1.0
//
// Vector accesses: several neighbouring elements in one access of up to 16 bytes. In registers,
// elements of 16 bits are floats.
#pragma once

#include <cstddef>
#include <type_traits>

#include <pipe/base/config.hpp>
#include <pipe/base/half.hpp>

namespace pp::cuda {

/// Neighbouring elements that are read or written in one access.
template <class T, int Count>
struct alignas(sizeof(T) * Count) packed {
  T item[Count];
};

/// Elements of T in the widest access of at most 16 bytes that divides a row of `columns` elements,
/// so that every row begins with a whole access.
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

/// Two numbers, rounded to 16 bits, in a word, `low` in its lower half: one conversion for both.
template <class T>
PIPE_HD PIPE_INLINE unsigned pack(float low, float high) {
#ifdef __CUDA_ARCH__
  unsigned both;
  if constexpr (std::is_same_v<T, bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
#else
  return unsigned(T(low).bits) | unsigned(T(high).bits) << 16;
#endif
}

/// The lower (half = 0) or the upper (half = 1) of two numbers in a word: one instruction if `half`
/// is a constant.
template <class T>
PIPE_HD PIPE_INLINE float unpack(unsigned both, int half) {
  if constexpr (std::is_same_v<T, bf16>)
    return __builtin_bit_cast(float, half == 0 ? both << 16 : both & 0xffff0000u);
  else
    return detail::float_from_f16(static_cast<std::uint16_t>(both >> 16 * half));
}

/// The memory space of an address, for instructions that name it: a store without a space is
/// slower, and stays behind every earlier access.
enum class memory_space { global, shared };

/// Writes words to memory in one access, by an instruction: nvcc splits a structure, and does not
/// always join its stores again.
///
/// needs: `to` is aligned to the size of all words together
template <memory_space In, int Words>
PIPE_HD PIPE_INLINE void store_words(void* to, unsigned const (&w)[Words]) {
  static_assert(Words == 1 || Words == 2 || Words == 4);
#ifdef __CUDA_ARCH__
  if constexpr (In == memory_space::global) {
    auto const at = __cvta_generic_to_global(to);
    if constexpr (Words == 4)
      asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(at), "r"(w[0]), "r"(w[1]),
                   "r"(w[2]), "r"(w[3])
                   : "memory");
    else if constexpr (Words == 2)
      asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(at), "r"(w[0]), "r"(w[1]) : "memory");
    else
      asm volatile("st.global.b32 [%0], %1;" ::"l"(at), "r"(w[0]) : "memory");
  } else {
    auto const at = unsigned(__cvta_generic_to_shared(to));
    if constexpr (Words == 4)
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(w[0]), "r"(w[1]),
                   "r"(w[2]), "r"(w[3])
                   : "memory");
    else if constexpr (Words == 2)
      asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(at), "r"(w[0]), "r"(w[1]) : "memory");
    else
      asm volatile("st.shared.b32 [%0], %1;" ::"r"(at), "r"(w[0]) : "memory");
  }
#else
  __builtin_memcpy(to, w, sizeof w);
#endif
}

/// *to = p in one access.
template <memory_space In = memory_space::global, class T, int Count>
PIPE_HD PIPE_INLINE void store(packed<T, Count>* to, packed<T, Count> const& p) {
  if constexpr (sizeof p % 4 == 0) {
    auto const words = __builtin_bit_cast(packed<unsigned, int(sizeof p) / 4>, p);
    store_words<In>(to, words.item);
  } else {
    *to = p;
  }
}

/// Count neighbouring elements in the format of memory, loaded before they are needed.
template <class T, int Count>
struct fetched {
  static constexpr int most = 16 / int(sizeof(T)), each = Count < most ? Count : most;
  static constexpr bool is_in_words = sizeof(T) == 2 && each > 1;
  using item = std::conditional_t<is_in_words, unsigned, T>;
  static constexpr int items = each * int(sizeof(T)) / int(sizeof(item));  // items of an access
  packed<item, items> part[Count / each];

  /// Loads the elements in accesses of up to 16 bytes.
  ///
  /// needs: Count is a power of two and `from` a multiple of Count elements behind an aligned
  ///        address
  PIPE_HD PIPE_INLINE void load(T const* from) {
    PIPE_UNROLL
    for (int i = 0; i < Count / each; ++i)
      part[i] = *reinterpret_cast<packed<item, items> const*>(from + i * each);
  }
  /// Element i, as a float if T has 16 bits; i should be a constant after loops are unrolled.
  PIPE_HD PIPE_INLINE auto operator[](int i) const {
    if constexpr (is_in_words)
      return unpack<T>(part[i / each].item[i % each / 2], i % 2);
    else if constexpr (sizeof(T) == 2)
      return float(part[i / each].item[i % each]);
    else
      return part[i / each].item[i % each];
  }
};

/// Loads Count neighbouring elements to registers: doubles as doubles, others as floats.
///
/// needs: as fetched::load
template <int Count, class T, class Number>
PIPE_HD PIPE_INLINE void load(T const* from, Number (&to)[Count]) {
  fetched<std::remove_const_t<T>, Count> all;
  all.load(from);
  PIPE_UNROLL
  for (int i = 0; i < Count; ++i) to[i] = all[i];
}
/// Stores Count numbers to memory, rounded to T. needs: as load
template <int Count, memory_space In = memory_space::global, class T, class Number>
PIPE_HD PIPE_INLINE void save(T* to, Number const (&from)[Count]) {
  constexpr int most = 16 / int(sizeof(T)), each = Count < most ? Count : most;
  PIPE_UNROLL
  for (int i = 0; i < Count; i += each) {
    if constexpr (sizeof(T) == 2 && each > 1) {
      unsigned words[each / 2];
      PIPE_UNROLL
      for (int k = 0; k < each / 2; ++k) words[k] = pack<T>(from[i + 2 * k], from[i + 2 * k + 1]);
      store_words<In>(to + i, words);
    } else {
      packed<T, each> p;
      PIPE_UNROLL
      for (int k = 0; k < each; ++k) p.item[k] = T(from[i + k]);
      store<In>(reinterpret_cast<packed<T, each>*>(to + i), p);
    }
  }
}

}  // namespace pp::cuda
