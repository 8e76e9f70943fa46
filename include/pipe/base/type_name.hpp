// SPDX-License-Identifier: BSL-1.0
//
// How a type is called in the program's own words, the same under every compiler: the names in plans and messages.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include <pipe/base/static_vector.hpp>

namespace pp {

/// The type's name as the compiler spells it, between some text that is the same for every type.
template <class T>
constexpr std::string_view spelled_signature() {
  return __PRETTY_FUNCTION__;
}

template <class T>
constexpr std::string_view spelled_name() {
  constexpr std::string_view known = "double", signature = spelled_signature<double>();
  constexpr std::size_t before = signature.find(known), after = signature.size() - before - known.size();
  constexpr std::string_view whole = spelled_signature<T>();
  return whole.substr(before, whole.size() - before - after);
}

constexpr bool continues_a_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == ':';
}

/// How much of the beginning says nothing: `pp::`, a nameless namespace, a cast that some compilers print before
/// numbers.
constexpr std::size_t superfluous_at(std::string_view text) {
  for (std::string_view const word :
       {"pp::", "{anonymous}::", "(anonymous namespace)::", "<unnamed>::", "(int)", "(long)"})
    if (text.substr(0, word.size()) == word) return word.size();
  return text.substr(0, 11) == "_GLOBAL__N_" ? text.find("::") + 2 : 0;  // nvcc's nameless namespace
}

template <std::size_t Capacity>
constexpr static_vector<char, Capacity> tidy_name(std::string_view spelled) {
  static_vector<char, Capacity> name;
  while (!spelled.empty()) {
    std::size_t const skipped = name.empty() || !continues_a_name(name.back()) ? superfluous_at(spelled) : 0;
    bool const space_before_bracket = spelled.substr(0, 2) == " >";
    if (skipped == 0 && !space_before_bracket) {
      name.push_back(spelled[0]);
      if (spelled[0] == ',' && spelled.substr(1, 1) != " ") name.push_back(' ');
    }
    spelled.remove_prefix(skipped > 0 ? skipped : 1);
  }
  return name;
}

/// As the user writes it with `using namespace pp`: `Residual<LayerNorm, Attention<3>>`.
template <class T>
constexpr auto tidy_name_of = tidy_name<2 * spelled_name<T>().size()>(spelled_name<T>());

template <class T>
constexpr std::string_view type_name() {
  return {tidy_name_of<T>.items, tidy_name_of<T>.size()};
}

}  // namespace pp
