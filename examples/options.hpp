// SPDX-License-Identifier: BSL-1.0
//
// Checks of numbers among the options of examples, for `add_option(...)->check(above_0)`. Their
// words are short and repeat what was given; those of CLI11 print the bounds of a double.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <system_error>

/// The number that all of a text is; NaN if it is none.
inline double number(std::string const& text) {
  char* end = nullptr;
  double const x = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0 ? x : NAN;
}

/// What keeps a text from being a whole number that a T holds, `least` or more; nothing if all is
/// well.
template <class T, int least = 0>
std::string whole(std::string const& text) {
  T value = 0;
  auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool const good = fault == std::errc{} && end == text.data() + text.size() && value >= T(least);
  return good ? ""
              : "needs a whole number of at least " + std::to_string(least) + " and at most " +
                    std::to_string(std::numeric_limits<T>::max()) + ", got '" + text + "'";
}

inline std::string above_0(std::string const& text) {
  double const x = number(text);
  return x > 0 && std::isfinite(x) ? "" : "needs a number above 0, got '" + text + "'";
}

inline std::string at_least_0(std::string const& text) {
  double const x = number(text);
  return x >= 0 && std::isfinite(x) ? "" : "needs a number of at least 0, got '" + text + "'";
}
