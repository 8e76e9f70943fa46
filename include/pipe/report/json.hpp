// SPDX-License-Identifier: BSL-1.0
//
// Texts of JSON, put together from texts of JSON.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>

namespace pp::detail {

/// `[one(0),one(1),...]`. What one(i) returns may be several items with commas between.
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

/// `1,2,3`: items of an array.
inline std::string json_numbers(std::initializer_list<long> numbers) {
  std::string text;
  for (long const n : numbers) {
    if (!text.empty()) text += ',';
    text += std::to_string(n);
  }
  return text;
}

/// `{"name":value,...}`, a line for each; names need no escapes.
inline std::string json_object(std::initializer_list<std::pair<char const*, std::string>> members) {
  std::string text;
  for (auto const& [name, value] : members)
    text.append(text.empty() ? "{\"" : ",\n\"").append(name).append("\":").append(value);
  text += '}';
  return text;
}

}  // namespace pp::detail
