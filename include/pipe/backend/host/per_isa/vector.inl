// SPDX-License-Identifier: BSL-1.0
//
// The vector type of the instruction set. GCC vector extensions give element-wise arithmetic and
// scalar broadcast on every compiler we use, stay in registers, and need no intrinsics header.

template <class T>
struct vector_of {
  static constexpr int lanes = this_isa::vector_bytes / static_cast<int>(sizeof(T));
  typedef T type __attribute__((vector_size(this_isa::vector_bytes)));
  /// The same value in memory: at any element's address, and allowed to alias arrays of T.
  typedef T unaligned
      __attribute__((vector_size(this_isa::vector_bytes), aligned(sizeof(T)), may_alias));
};

/// A vector register of T. It must not cross from one instruction set's code to another's: the
/// calling conventions differ.
template <class T>
using vec = typename vector_of<T>::type;

/// Elements of a vector.
template <class T>
inline constexpr int lanes = vector_of<T>::lanes;

/// `lanes` elements from any address that is aligned to T; save() is its counterpart.
template <class T>
[[gnu::always_inline]] inline vec<T> load(T const* from) {
  return *reinterpret_cast<typename vector_of<T>::unaligned const*>(from);
}

template <class T>
[[gnu::always_inline]] inline void save(T* to, vec<T> value) {
  *reinterpret_cast<typename vector_of<T>::unaligned*>(to) = value;
}

/// Keeps a loaded vector in its register. For -march=native compilers make the load a part of each
/// of its uses, and a loop that is bound by its multipliers is then bound by its loads.
template <class T>
[[gnu::always_inline]] inline void hold(vec<T>& value) {
#ifdef __x86_64__
  if constexpr (this_isa::vector_bytes == 64)
    asm("" : "+v"(value));
  else
    asm("" : "+x"(value));
#endif
}

/// save() past the caches, where `to` allows it. Other threads see it after finish_streaming().
template <class T>
[[gnu::always_inline]] inline void stream(T* to, vec<T> value) {
#ifdef __x86_64__
  if (reinterpret_cast<std::uintptr_t>(to) % this_isa::vector_bytes == 0) {
    auto& place = *reinterpret_cast<typename vector_of<T>::unaligned*>(to);
    if constexpr (this_isa::vector_bytes == 16)
      asm("movntps %1, %0" : "=m"(place) : "x"(value));
    else
      asm("vmovntps %1, %0" : "=m"(place) : "x"(value));
    return;
  }
#endif
  save(to, value);
}

/// The fence that orders streamed stores before those that come after, such as the flag that says a
/// kernel is done.
inline void finish_streaming() {
#ifdef __x86_64__
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

struct larger {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a > b ? a : b;
  }
};

struct sum_of {
  template <class T>
  [[gnu::always_inline]] static T of(T a, T b) {
    return a + b;
  }
};

/// All lanes folded into one value by halves: lane c with lane c + lanes / 2, and so on. Not
/// inlined: it is called once for many vectors, from many places.
///
/// law: the order depends on the lane count only
template <class Fold, class T>
[[gnu::noinline]] T fold_lanes(vec<T> x) {
  T lane[lanes<T>];
  save(lane, x);
  if constexpr (lanes<T> >= 16)
    for (int c = 0; c < 8; ++c) lane[c] = Fold::of(lane[c], lane[c + 8]);
  if constexpr (lanes<T> >= 8)
    for (int c = 0; c < 4; ++c) lane[c] = Fold::of(lane[c], lane[c + 4]);
  if constexpr (lanes<T> >= 4)
    for (int c = 0; c < 2; ++c) lane[c] = Fold::of(lane[c], lane[c + 2]);
  return Fold::of(lane[0], lane[1]);
}
