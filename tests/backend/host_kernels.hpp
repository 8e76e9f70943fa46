// SPDX-License-Identifier: BSL-1.0
//
// For the tests of host kernels: the functions of every instruction set as one struct each, a loop
// over those that this machine can run, and buffers of exact size, so that AddressSanitizer sees
// every element read or written outside.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include <pipe/backend/host/kernels.hpp>

#define PIPE_TESTED_ISA(NAME)                                                            \
  struct NAME##_kernels {                                                                \
    static constexpr char const* name = #NAME;                                           \
    template <class P, int G, class Arguments>                                           \
    static void run(Arguments const& arguments) {                                        \
      pp::host::NAME::run<P, G>(arguments);                                              \
    }                                                                                    \
    template <class T, class... Arguments>                                               \
    static void contract(Arguments&&... arguments) {                                     \
      pp::host::NAME::contract<T>(std::forward<Arguments>(arguments)...);                \
    }                                                                                    \
    template <class T, class... Arguments>                                               \
    static void transpose(Arguments... arguments) {                                      \
      pp::host::NAME::transpose<T>(arguments...);                                        \
    }                                                                                    \
    template <class T, class... Arguments>                                               \
    static void transpose_in_panels(Arguments... arguments) {                            \
      pp::host::NAME::transpose_in_panels<T>(arguments...);                              \
    }                                                                                    \
    template <class T>                                                                   \
    static constexpr pp::host::extent columns_of_tile() {                                \
      return pp::host::NAME::tile_columns<T>;                                            \
    }                                                                                    \
    template <class T, class... Arguments>                                               \
    static void column_sums(Arguments... arguments) {                                    \
      pp::host::NAME::column_sums<T>(arguments...);                                      \
    }                                                                                    \
    template <class T, class V>                                                          \
    static auto const& products() {                                                      \
      return pp::host::NAME::products_of<T, V, 1, 1>;                                    \
    }                                                                                    \
    template <class T>                                                                   \
    static auto const& attention_rows(pp::host::attention_shape const& shape) {          \
      return shape.scores.is_plain() ? pp::host::NAME::attention_rows<T>                 \
                                     : pp::host::NAME::attention_rows<T, true, 1, true>; \
    }                                                                                    \
    template <class T, class... Arguments>                                               \
    static void attention_forward(pp::host::attention_shape const& shape,                \
                                  Arguments... arguments) {                              \
      pp::host::attention_forward<T>(attention_rows<T>(shape), shape, arguments...);     \
    }                                                                                    \
    template <class T, class... Arguments>                                               \
    static void attention_backward(pp::host::attention_shape const& shape,               \
                                   Arguments... arguments) {                             \
      pp::host::attention_backward<T>(attention_rows<T>(shape), shape, arguments...);    \
    }                                                                                    \
    template <class... Arguments>                                                        \
    static void update(Arguments const&... arguments) {                                  \
      pp::host::NAME::update(arguments...);                                              \
    }                                                                                    \
  };

PIPE_TESTED_ISA(portable)
#ifdef __x86_64__
PIPE_TESTED_ISA(avx2)
PIPE_TESTED_ISA(avx512)
#endif
#undef PIPE_TESTED_ISA

/// test(kernels) for each instruction set of this machine.
template <class Test>
void on_every_isa(Test test) {
  test(portable_kernels{});
#ifdef __x86_64__
  if (pp::host::best_isa() >= pp::host::isa::avx2) test(avx2_kernels{});
  if (pp::host::best_isa() >= pp::host::isa::avx512) test(avx512_kernels{});
#endif
}

/// Exactly `count` elements on the heap, zero, or uniform in [-0.5, 0.5) by `seed`.
template <class T>
struct exact {
  std::unique_ptr<T[]> items;
  std::size_t count;

  explicit exact(std::ptrdiff_t n)
      : items(new T[static_cast<std::size_t>(n)]{}), count(static_cast<std::size_t>(n)) {}
  exact(std::ptrdiff_t n, unsigned seed) : exact(n) {
    unsigned state = seed * 2654435761u + 1u;
    for (std::size_t i = 0; i < count; ++i) {
      state = state * 1664525u + 1013904223u;
      // Exact in float, too.
      items[i] =
          static_cast<T>(static_cast<float>(static_cast<double>(state >> 8) / 16777216.0 - 0.5));
    }
  }
  T* data() const { return items.get(); }
  T& operator[](std::ptrdiff_t i) const { return items[static_cast<std::size_t>(i)]; }
  friend bool operator==(exact const& a, exact const& b) {
    if (a.count != b.count) return false;
    for (std::size_t i = 0; i < a.count; ++i)
      if (!(a.items[i] == b.items[i])) return false;
    return true;
  }
};

/// Exactly `bytes` of workspace, aligned as kernels ask, filled with NaN: nothing may rely on what
/// it holds.
struct workspace {
  static constexpr std::align_val_t alignment{pp::host::widest_vector_bytes};
  void* at;
  explicit workspace(std::size_t bytes) : at(::operator new(bytes, alignment)) {
    std::memset(at, 0xff, bytes);
  }
  ~workspace() { ::operator delete(at, alignment); }
  workspace(workspace const&) = delete;
  workspace& operator=(workspace const&) = delete;
};
