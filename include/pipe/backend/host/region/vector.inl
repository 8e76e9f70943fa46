// SPDX-License-Identifier: BSL-1.0
//
// The region's vector type. GCC vector extensions give element-wise arithmetic and scalar broadcast on every compiler
// we use, stay in registers, and need no intrinsics header.

namespace pp::host::PIPE_ISA {

template <class T>
struct vector_of {
  static constexpr int lanes = PIPE_VECTOR_BYTES / static_cast<int>(sizeof(T));
  typedef T type __attribute__((vector_size(PIPE_VECTOR_BYTES)));
  /// The same value in memory: at any element's address, and allowed to alias arrays of T.
  typedef T unaligned __attribute__((vector_size(PIPE_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};

template <class T>
using vec = typename vector_of<T>::type;

template <class T>
inline constexpr int lanes = vector_of<T>::lanes;

template <class T>
[[gnu::always_inline]] inline vec<T> load(T const* from) {
  return *reinterpret_cast<typename vector_of<T>::unaligned const*>(from);
}

template <class T>
[[gnu::always_inline]] inline void save(T* to, vec<T> value) {
  *reinterpret_cast<typename vector_of<T>::unaligned*>(to) = value;
}

/// save() past the caches, where `to` allows it. Other threads see it after finish_streaming().
template <class T>
[[gnu::always_inline]] inline void stream(T* to, vec<T> value) {
#if PIPE_HOST_HAS_AVX
  if (reinterpret_cast<std::uintptr_t>(to) % PIPE_VECTOR_BYTES == 0) {
    auto& place = *reinterpret_cast<typename vector_of<T>::unaligned*>(to);
    if constexpr (PIPE_VECTOR_BYTES == 16)
      asm("movntps %1, %0" : "=m"(place) : "x"(value));
    else
      asm("vmovntps %1, %0" : "=m"(place) : "x"(value));
    return;
  }
#endif
  save(to, value);
}

inline void finish_streaming() {
#if PIPE_HOST_HAS_AVX
  asm volatile("sfence" : : : "memory");
#endif
}

/// An integer as wide as T, for masks.
template <class T>
using bits_of = std::conditional_t<sizeof(T) == 4, int, long long>;

/// The first `count` lanes of x; the others are `rest`.
template <class T>
[[gnu::always_inline]] inline vec<T> keep_first(vec<T> x, extent count, vec<T> rest) {
  static constexpr bits_of<T> number[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return load(number) < static_cast<bits_of<T>>(count) ? x : rest;
}

/// Lane i of the result is lane From::lane(i) of a, or of b from `lanes` on. (nvcc's front end loses a parameter pack inside
/// this builtin, so the lanes are spelled out.)
template <class From, class T>
[[gnu::always_inline]] inline vec<T> shuffled(vec<T> a, vec<T> b) {
  constexpr int N = lanes<T>;
#define PIPE_LANES(i) From::lane(i), From::lane((i) + 1), From::lane((i) + 2), From::lane((i) + 3)
  if constexpr (N == 2) return __builtin_shufflevector(a, b, From::lane(0), From::lane(1));
  if constexpr (N == 4) return __builtin_shufflevector(a, b, PIPE_LANES(0));
  if constexpr (N == 8) return __builtin_shufflevector(a, b, PIPE_LANES(0), PIPE_LANES(4));
  if constexpr (N == 16)
    return __builtin_shufflevector(a, b, PIPE_LANES(0), PIPE_LANES(4), PIPE_LANES(8), PIPE_LANES(12));
#undef PIPE_LANES
}

struct larger {
  template <class V>
  [[gnu::always_inline]] static inline V of(V a, V b) {
    return a > b ? a : b;
  }
};

struct sum_of {
  template <class V>
  [[gnu::always_inline]] static inline V of(V a, V b) {
    return a + b;
  }
};

/// Lanes whose numbers differ in bit `Step` change places.
template <int Step>
struct swapped {
  static constexpr int lane(int i) { return i ^ Step; }
};

/// All lanes folded into one value, halves first. Not inlined: it is called once for many vectors, from many places.
template <class Fold, class T>
[[gnu::noinline]] T fold_lanes(vec<T> x) {
  if constexpr (lanes<T> >= 16) x = Fold::of(x, shuffled<swapped<8>, T>(x, x));
  if constexpr (lanes<T> >= 8) x = Fold::of(x, shuffled<swapped<4>, T>(x, x));
  if constexpr (lanes<T> >= 4) x = Fold::of(x, shuffled<swapped<2>, T>(x, x));
  return Fold::of(x, shuffled<swapped<1>, T>(x, x))[0];
}

}  // namespace pp::host::PIPE_ISA
