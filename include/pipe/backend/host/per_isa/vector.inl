// SPDX-License-Identifier: BSL-1.0
//
// The vector type of the instruction set. GCC vector extensions give element-wise arithmetic and
// scalar broadcast on every compiler we use, stay in registers, and need no intrinsics header.

template <class T>
struct vector_of {
  static constexpr int lanes = this_isa::vector_bytes / static_cast<int>(sizeof(T));
  typedef T type __attribute__((vector_size(this_isa::vector_bytes)));
  /// A vector in memory: at the address of any element, and allowed to alias arrays of T.
  typedef T unaligned
      __attribute__((vector_size(this_isa::vector_bytes), aligned(sizeof(T)), may_alias));
};

/// A bfloat16 has 16 bits in memory only: a vector of such numbers is a vector of floats.
template <>
struct vector_of<bf16> : vector_of<float> {
  typedef unsigned words __attribute__((vector_size(this_isa::vector_bytes)));
  typedef std::uint16_t halves __attribute__((vector_size(this_isa::vector_bytes / 2)));
  typedef std::uint16_t unaligned
      __attribute__((vector_size(this_isa::vector_bytes / 2), aligned(sizeof(bf16)), may_alias));
  /// The numbers as floats. law: exact
  [[gnu::always_inline]] static inline type widened(unaligned const& from) {
    return (type)(__builtin_convertvector(from, words) << 16);
  }
  /// The numbers rounded to nearest, ties to even. law: the bits of bf16_from_float
  [[gnu::always_inline]] static inline halves narrowed(type value) {
    words const bits = (words)value, upper = bits >> 16;
    words const rounded = (bits + (0x7FFFu + (upper & 1u))) >> 16,
                nan = upper | ((bits & 0x7F0000u) == 0u ? words{} + 1u : words{});
    return __builtin_convertvector((bits & 0x7FFFFFFFu) > 0x7F800000u ? nan : rounded, halves);
  }
};

/// A vector register of T. It must not be passed between functions of different instruction sets:
/// calling conventions differ.
template <class T>
using vec = typename vector_of<T>::type;

/// Elements of a vector.
template <class T>
inline constexpr int lanes = vector_of<T>::lanes;

/// `lanes` elements from any address that is aligned to T; save() is its counterpart.
template <class T>
[[gnu::always_inline]] inline vec<T> load(T const* from) {
  using memory = typename vector_of<T>::unaligned;
  if constexpr (std::is_same_v<T, bf16>)
    return vector_of<T>::widened(*reinterpret_cast<memory const*>(from));
  else
    return *reinterpret_cast<memory const*>(from);
}

template <class T>
[[gnu::always_inline]] inline void save(T* to, vec<T> value) {
  using memory = typename vector_of<T>::unaligned;
  if constexpr (std::is_same_v<T, bf16>)
    *reinterpret_cast<memory*>(to) = vector_of<T>::narrowed(value);
  else
    *reinterpret_cast<memory*>(to) = value;
}

/// x in all lanes. (x - 0 is x even for x = -0, whereas -0 + 0 is +0.)
template <class T>
[[gnu::always_inline]] inline vec<T> all_lanes(T x) {
  return x - vec<T>{};
}

/// The rounding of products in formulas that all instruction sets share; see math::product.
inline constexpr math::product products =
    this_isa::fuses ? math::product::exact : math::product::rounded;

/// a * b + c in each lane, rounded once. g++ needs builtins, since it fuses the expression a * b +
/// c at some levels of optimisation only; clang++ has no such builtins, but a pragma that fuses one
/// expression.
///
/// needs: a set that has a fused multiply-add
template <class V>
[[gnu::always_inline]] inline V fused(V a, V b, V c) {
#if defined(__clang__)
#pragma clang fp contract(on)  // one instruction on every target that has a fused multiply-add
  return a * b + c;
#else
  using element = std::remove_cvref_t<decltype(a[0])>;
  constexpr std::size_t bytes = sizeof(V);
  constexpr bool is_float = sizeof(element) == sizeof(float);
#if defined(__x86_64__)
  if constexpr (bytes == 64 && is_float)
    return __builtin_ia32_vfmaddps512_mask(a, b, c, -1, 4);  // all lanes; the current rounding mode
  else if constexpr (bytes == 64)
    return __builtin_ia32_vfmaddpd512_mask(a, b, c, 0xff, 4);
  else if constexpr (is_float)
    return __builtin_ia32_vfmaddps256(a, b, c);
  else
    return __builtin_ia32_vfmaddpd256(a, b, c);
#elif defined(__aarch64__)
  if constexpr (is_float)
    return __builtin_aarch64_fmav4sf(a, b, c);
  else
    return __builtin_aarch64_fmav2df(a, b, c);
#else
  V sum;
  for (std::size_t lane = 0; lane < bytes / sizeof(element); ++lane)
    sum[lane] = math::multiply_add<math::product::exact>(a[lane], b[lane], c[lane]);
  return sum;
#endif
#endif
}

/// a * b + c of numbers or vectors: the only product and sum in kernels that may become one
/// instruction. So the source alone decides the bits of a kernel. A compiler that may choose where
/// to fuse decides by its level of optimisation, by inlining and by the loop around the expression;
/// g++ fuses nothing at -O1.
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c) {
  return math::multiply_add<products>(a, b, c);
}
[[gnu::always_inline]] inline double multiply_add(double a, double b, double c) {
  return math::multiply_add<products>(a, b, c);
}
template <class V>
[[gnu::always_inline]] inline V multiply_add(V a, V b, V c) {
  if constexpr (this_isa::fuses)
    return fused(a, b, c);
  else
    return a * b + c;
}

/// Calls of the formulas of a layer, a loss or an optimizer. Formulas are inlined here, but cannot
/// know the instruction set, so the library's formulas take the rounding of products as a template
/// argument. User-defined formulas need no such argument: their products are rounded.
///
/// returns: F::forward(x); the functions below: F::derivative, F::value, F::slope and
///          Optimizer::apply
template <class F, class T>
PIPE_INLINE T forward_of(T x) {
  if constexpr (requires { F::template forward<products>(x); })
    return F::template forward<products>(x);
  else
    return F::forward(x);
}
template <class F, class T>
PIPE_INLINE T derivative_of(T x) {
  if constexpr (requires { F::template derivative<products>(x); })
    return F::template derivative<products>(x);
  else
    return F::derivative(x);
}
template <class F, class T, class... More>
PIPE_INLINE T loss_value_of(T x, More... more) {
  if constexpr (requires { F::template value<products>(x, more...); })
    return F::template value<products>(x, more...);
  else
    return F::value(x, more...);
}
template <class F, class T, class... More>
PIPE_INLINE T loss_slope_of(T x, More... more) {
  if constexpr (requires { F::template slope<products>(x, more...); })
    return F::template slope<products>(x, more...);
  else
    return F::slope(x, more...);
}
template <class Optimizer, class Coefficients, class T, class... States>
PIPE_INLINE T applied(Coefficients const& c, T w, T g, States&... states) {
  if constexpr (requires { Optimizer::template apply<products>(c, w, g, states...); })
    return Optimizer::template apply<products>(c, w, g, states...);
  else
    return Optimizer::apply(c, w, g, states...);
}

/// Keeps a loaded vector in its register. With -march=native, compilers make the load a part of
/// each instruction that uses the vector, and a loop that is bound by multipliers is then bound by
/// loads.
template <class T>
[[gnu::always_inline]] inline void hold(vec<T>& value) {
#ifdef __x86_64__
  if constexpr (this_isa::vector_bytes == 64)
    asm("" : "+v"(value));
  else
    asm("" : "+x"(value));
#endif
}

/// save() past the caches, if `to` is aligned to a vector. Other threads see the value after
/// finish_streaming().
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

/// The fence that orders streamed stores before later stores, such as the flag that a kernel is
/// done.
inline void finish_streaming() {
#ifdef __x86_64__
  asm volatile("sfence" : : : "memory");
#endif
}

/// An integer as wide as T, for masks.
template <class T>
using bits_of = std::conditional_t<sizeof(T) == 4, int, long long>;

/// The first `count` lanes of x; the other lanes are from `rest`.
template <class T>
[[gnu::always_inline]] inline vec<T> keep_first(vec<T> x, extent count, vec<T> rest) {
  static constexpr bits_of<T> number[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return load(number) < static_cast<bits_of<T>>(count) ? x : rest;
}

/// Functions for fold_lanes: one value from two.
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

/// The number of vectors that hold the partial sums of a row: more than one for a set that has the
/// bits of a set with wider vectors.
inline constexpr int sum_vectors = this_isa::sum_bytes / this_isa::vector_bytes;
/// The number of partial sums of a row.
template <class T>
inline constexpr int sum_lanes = sum_vectors * lanes<T>;
/// Partial sums, from zero. Element i of a row belongs to sum i % sum_lanes.
template <class T>
struct partial_sums {
  vec<T> part[sum_vectors] = {};
  [[gnu::always_inline]] friend partial_sums operator+(partial_sums a, partial_sums const& b) {
#pragma GCC unroll 2
    for (int v = 0; v < sum_vectors; ++v) a.part[v] += b.part[v];
    return a;
  }
};

/// All lanes folded into one value by halves: lane c with lane c + lanes / 2, and so on. Not
/// inlined, since it is called from many places, once for many vectors.
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
/// The sum of all partial sums, by halves.
template <class T>
[[gnu::always_inline]] inline T total_of(partial_sums<T> const& x) {
  if constexpr (sum_vectors == 1)
    return fold_lanes<sum_of, T>(x.part[0]);
  else
    return fold_lanes<sum_of, T>(x.part[0] + x.part[1]);
}
