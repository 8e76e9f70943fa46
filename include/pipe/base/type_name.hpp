// SPDX-License-Identifier: BSL-1.0
//
// How a type is called in the program's own words, the same under every compiler: the names in plans and messages.
#pragma once

#include <cstddef>
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

/// Leaves out `pp::`, nameless namespaces, the casts that some compilers print before numbers, and spaces before `>`.
template <std::size_t Capacity>
constexpr static_vector<char, Capacity> tidy_name(std::string_view spelled) {
  constexpr std::string_view superfluous[] = {"pp::",  "{anonymous}::", "(anonymous namespace)::",
                                              "<unnamed>::", "(int)",         "(long)"};
  static_vector<char, Capacity> name;
  while (!spelled.empty()) {
    bool left_out = false;
    if (name.empty() || !continues_a_name(name.back()))
      for (std::string_view const text : superfluous)
        if (!left_out && spelled.substr(0, text.size()) == text) {
          spelled.remove_prefix(text.size());
          left_out = true;
        }
    if (left_out) continue;
    char const c = spelled[0];
    spelled.remove_prefix(1);
    if (c == ' ' && !spelled.empty() && spelled[0] == '>') continue;
    name.push_back(c);
    if (c == ',' && !spelled.empty() && spelled[0] != ' ') name.push_back(' ');
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
