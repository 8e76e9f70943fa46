// SPDX-License-Identifier: BSL-1.0
//
// The colours of actions, as in the zero-bubble papers: F blue, B teal, W green, BW half and half.
// They differ in lightness as well as in hue, so that they are distinguishable without colour
// vision; letters and numbers repeat the information.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include <pipe/base/libm.hpp>
#include <pipe/schedule/action.hpp>

namespace pp::detail {

/// A colour in sRGB; components are 0 to 255.
struct colour {
  int red = 0, green = 0, blue = 0;

  friend constexpr bool operator==(colour const&, colour const&) = default;
};

inline constexpr colour white{255, 255, 255}, ink{17, 24, 39};

/// A colour as "#rrggbb".
template <class = void>
std::string hex_of(colour c) {
  constexpr char digits[] = "0123456789abcdef";
  std::string text = "#";
  for (int const part : {c.red, c.green, c.blue}) (text += digits[part >> 4]) += digits[part & 15];
  return text;
}

/// Relative luminance, 0 to 1.
///
/// source: WCAG 2
inline double luminance(colour c) {
  auto const linear = [](int part) {
    double const v = part / 255.0;
    return v <= 0.04045 ? v / 12.92 : libm::pow((v + 0.055) / 1.055, 2.4);
  };
  return 0.2126 * linear(c.red) + 0.7152 * linear(c.green) + 0.0722 * linear(c.blue);
}

/// Contrast ratio, 1 to 21; text is readable from 4.5 on.
///
/// source: WCAG 2
inline double contrast(colour a, colour b) {
  double const x = luminance(a) + 0.05, y = luminance(b) + 0.05;
  return x > y ? x / y : y / x;
}

/// Text colour with the higher contrast to a background: ink or white.
inline colour text_on(colour background) {
  return contrast(ink, background) >= contrast(white, background) ? ink : white;
}

/// Number of shades. Further chunks use the last one.
inline constexpr int drawn_shades = 4;

/// Fill colour of an action. `shade`: number of the chunk on its rank; each is darker than the
/// previous one, up to the last. BW has two fills: that of B on the left, that of W on the right.
constexpr colour fill_of(action_kind kind, int shade = 0) {
  constexpr colour fills[action_kinds][drawn_shades] = {
      {{110, 160, 246}, {47, 92, 184}, {32, 69, 143}, {21, 47, 102}},   // F
      {{142, 224, 226}, {31, 127, 140}, {21, 99, 112}, {13, 74, 85}},   // B
      {{102, 187, 106}, {44, 107, 48}, {31, 80, 36}, {20, 57, 26}},     // W
      {{142, 224, 226}, {31, 127, 140}, {21, 99, 112}, {13, 74, 85}},   // BW
      {{206, 210, 215}, {105, 112, 124}, {82, 89, 100}, {61, 67, 77}},  // R
      {{255, 167, 64}, {168, 90, 6}, {135, 69, 0}, {104, 52, 0}}        // U
  };
  int const row = static_cast<int>(kind) < action_kinds ? static_cast<int>(kind) : 0;
  return fills[row][shade < drawn_shades ? shade : drawn_shades - 1];
}

/// Colour of a rank's memory curve, from dark (first rank) to light.
///
/// source: the first three quarters of matplotlib's viridis
inline colour colour_of_rank(std::size_t rank, std::size_t ranks) {
  constexpr colour stops[] = {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}};
  double const along = ranks < 2 ? 0 : 3 * double(rank) / double(ranks - 1);
  int const stop = along < 2 ? int(along) : 2;
  auto const mixed = [&](int a, int b) {
    double const change = (along - stop) * (b - a);
    return a + int(change < 0 ? change - 0.5 : change + 0.5);
  };
  colour const a = stops[stop], b = stops[stop + 1];
  return {mixed(a.red, b.red), mixed(a.green, b.green), mixed(a.blue, b.blue)};
}

/// Dashes of a rank's memory curve, in pixels: a line and a gap, and again. The first rank's curve
/// is solid, and the next ones are painted over it, so that equal curves are all seen.
constexpr std::array<int, 4> dashes_of_rank(std::size_t rank) {
  constexpr std::array<int, 4> dashes[] = {{}, {9, 4, 9, 4}, {2, 3, 2, 3}, {9, 3, 2, 3}};
  return dashes[rank % 4];
}

/// Name of an action kind in a legend.
constexpr char const* long_name(action_kind kind) {
  constexpr char const* names[action_kinds] = {
      "forward", "backward, input", "backward, weight", "backward, both", "recompute", "update"};
  return static_cast<int>(kind) < action_kinds ? names[static_cast<int>(kind)] : "?";
}

/// Name of a shade in a legend, counted from 1.
template <class = void>
std::string name_of_shade(int shade) {
  return "chunk " + std::to_string(shade + 1) + " of a rank";
}

}  // namespace pp::detail
