// SPDX-License-Identifier: BSL-1.0
//
// Composition of JSON texts.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

namespace pp::detail {

/// A JSON array `[one(0),one(1),...]`. one(i) may return several items, separated by commas.
template <class One>
std::string json_array(std::size_t count, One one) {
  std::string text = "[";
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    text += one(i);
  }
  text += ']';
  return text;
}

/// Numbers as items of an array: `1,2,3`.
inline std::string json_numbers(std::initializer_list<long> numbers) {
  std::string text;
  for (long const n : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(n);
  }
  return text;
}

/// A JSON object `{"name":value,...}`, one member per line. Names are not escaped.
/// Values are JSON texts.
inline std::string json_object(std::initializer_list<std::pair<char const*, std::string>> members) {
  std::string text;
  for (auto const& [name, value] : members)
    text.append(text.empty() ? "{\"" : ",\n\"").append(name).append("\":").append(value);
  text += '}';
  return text;
}

}  // namespace pp::detail
