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
    std::tuple<Argument const*...> const a{w.read<Argument>(i.of[K + 1], active)...};
    Result* const d = w.write<Result>(i.of[0], active);
    each(active, [&](int l) { d[l] = F::of(std::get<K>(a)[l]...); });
  }(std::index_sequence_for<Argument...>{});
}

/// Reads a lane's value of type T from a register that may be wider.
template <class T>
struct wide_reader {
  unsigned char const* from;
  int width;
  wide_reader(warp& w, operand const& o, lanes active) : from(w.read<unsigned char>(o, active)), width(o.width) {}
  T operator[](int l) const {
    T value;
    std::memcpy(&value, from + l * width, sizeof(T));
    return value;
  }
};
/// Writes a lane's value into a register that may be wider: with its sign if it has one, else with zeros.
template <class T>
struct wide_writer {
  unsigned char* to;
  int width;
  wide_writer(warp& w, operand const& o, lanes active) : to(w.write<unsigned char>(o, active)), width(o.width) {}
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
