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

/// x in all lanes. (x - 0 is x, -0 included, where x + 0 is not.)
template <class T>
[[gnu::always_inline]] inline vec<T> all_lanes(T x) {
  return x - vec<T>{};
}

/// How formulas that all instruction sets share round products; see math::product.
inline constexpr math::product products =
    this_isa::fuses ? math::product::exact : math::product::rounded;

/// a * b + c in each lane, rounded once. By builtins and not as a * b + c: g++ fuses that at some
/// levels of optimisation and not at others, and clang++ has no such builtins, but a pragma that
/// says so for one expression.
///
/// needs: a set that has the instruction
template <class V>
[[gnu::always_inline]] inline V fused(V a, V b, V c) {
#if defined(__clang__)
#pragma clang fp contract(on)  // one instruction on every target that has it
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

/// a * b + c of numbers, and below of vectors: the only product and sum of kernels that may be one
/// instruction. The bits of a kernel are those of its source: a compiler that may choose where to
/// fuse does so by its level, by what is inlined and by the loop around, and g++ does nothing of
/// the kind at -O1.
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

/// The formulas of a layer, a loss or an optimizer. They are always inlined here, but cannot ask
/// for what instruction set, so the library's own are told how products are rounded. A program's
/// own need not know: its products are rounded.
///
/// returns: F::forward(x); the functions below likewise, of F::derivative, F::value, F::slope and
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

/// Folds for fold_lanes: how two values become one.
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

/// How many vectors hold the partial sums of a row together: more than one where another set's bits
/// are wanted whose vectors are wider.
inline constexpr int sum_vectors = this_isa::sum_bytes / this_isa::vector_bytes;
/// The number of partial sums.
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
/// The sum of all partial sums, by halves.
template <class T>
[[gnu::always_inline]] inline T total_of(partial_sums<T> const& x) {
  if constexpr (sum_vectors == 1)
    return fold_lanes<sum_of, T>(x.part[0]);
  else
    return fold_lanes<sum_of, T>(x.part[0] + x.part[1]);
}
