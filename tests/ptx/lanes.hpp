// SPDX-License-Identifier: BSL-1.0
//
// Functions of one lane as functions of a warp.
#pragma once

#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "warp.hpp"

namespace ptx {

/// Calls f(lane) for each active lane.
template <class F>
void each(lanes active, F f) {
  if (active == all_lanes)
    for (int l = 0; l < warp_size; ++l) f(l);
  else
    for (lanes left = active; left != 0; left &= left - 1) f(__builtin_ctz(left));
}

/// F::of(a, b, ...) of one lane: operand 0 is the result, the arguments follow.
template <class F, class Result, class... Argument>
void apply(warp& w, instruction const& i, lanes active) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    std::tuple<Argument const*...> const a{w.look<Argument>(i.of[K + 1])...};
    Result* const d = w.write<Result>(i.of[0], active, (w.known_of(i.of[K + 1]) & ...));
    each(active, [&](int l) { d[l] = F::of(std::get<K>(a)[l]...); });
  }(std::index_sequence_for<Argument...>{});
}

/// F::of(a, b) as a predicate.
template <class F, class T>
void compare(warp& w, instruction const& i, lanes active) {
  T const *const a = w.look<T>(i.of[1]), *const b = w.look<T>(i.of[2]);
  lanes found = 0;
  each(active, [&](int l) { found |= lanes(F::of(a[l], b[l])) << l; });
  w.set(i.of[0], found, active, w.known_of(i.of[1]) & w.known_of(i.of[2]));
}
/// selp: the first of two values where a predicate holds.
template <class T>
void select(warp& w, instruction const& i, lanes active) {
  T const *const a = w.look<T>(i.of[1]), *const b = w.look<T>(i.of[2]);
  lanes const first = *w.look<lanes>(i.of[3]);
  lanes const known =
      w.known_of(i.of[3]) & ((first & w.known_of(i.of[1])) | (~first & w.known_of(i.of[2])));
  T* const d = w.write<T>(i.of[0], active, known);
  each(active, [=](int l) { d[l] = (first >> l & 1) != 0 ? a[l] : b[l]; });
}

/// Reads a lane's value of type T from a register that may be wider.
template <class T>
struct wide_reader {
  unsigned char const* from;
  int width;
  wide_reader(warp const& w, operand const& o) : from(w.look<unsigned char>(o)), width(o.width) {}
  T operator[](int l) const {
    T value;
    std::memcpy(&value, from + l * width, sizeof(T));
    return value;
  }
};
/// Writes a lane's value into a register that may be wider: with its sign if it has one, else with
/// zeros.
template <class T>
struct wide_writer {
  unsigned char* to;
  int width;
  wide_writer(warp& w, operand const& o, lanes active, lanes known = all_lanes)
      : to(w.write<unsigned char>(o, active, known)), width(o.width) {}
  void operator()(int l, T value) const {
    if (width == int(sizeof(T))) {
      std::memcpy(to + l * width, &value, sizeof(T));
    } else {
      using wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
      wide const extended = static_cast<wide>(value);
      std::memcpy(to + l * width, &extended, std::size_t(width));
    }
  }
};

template <class T>
constexpr char letter() {
  return char('0' + sizeof(T));
}

}  // namespace ptx
