// SPDX-License-Identifier: BSL-1.0
//
// The names of types in plans and messages: as the program spells them, and the same under every
// compiler. They are cut out of __PRETTY_FUNCTION__, whose differences between g++, clang++ and
// nvcc are all handled in this file.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include <pipe/base/static_vector.hpp>

/// Outside `pp`, because inside a namespace g++ spells names without that namespace.
namespace pipe_spelling {
template <class T>
constexpr std::string_view in_full() {
  return {__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 1};
}
inline constexpr std::size_t before_name = in_full<double>().find("double");
}  // namespace pipe_spelling

namespace pp::detail {

/// The type's name as the compiler spells it, inside a text that is the same for every type. nvcc
/// spells a `text` with its terminating zero, so the length is from sizeof, not from a search for a
/// zero.
template <class T>
constexpr std::string_view spelled_signature() {
  return {__PRETTY_FUNCTION__, sizeof(__PRETTY_FUNCTION__) - 1};
}

inline constexpr std::string_view known_signature = spelled_signature<double>(),
                                  known_name = "double";
inline constexpr std::size_t before_name = known_signature.find(known_name);
inline constexpr std::size_t around_name = known_signature.size() - known_name.size();

/// The type's name as the compiler spells it.
template <class T>
constexpr std::string_view spelled_name() {
  constexpr std::string_view whole = spelled_signature<T>();
  return {whole.data() + before_name, whole.size() - around_name};
}

/// Whether a type is declared in namespace pp.
template <class T>
inline constexpr bool is_of_this_library =
    pipe_spelling::in_full<T>().substr(pipe_spelling::before_name, 4) == "pp::";

/// Whether a character continues an identifier or a qualified name.
constexpr bool continues_a_name(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         c == ':';
}

/// Prefixes without information: `pp::`, an unnamed namespace, a cast that some compilers print
/// before numbers.
inline constexpr std::string_view superfluous[] = {
    "pp::", "{anonymous}::", "(anonymous namespace)::", "<unnamed>::", "(int)", "(long)"};

/// The length of a superfluous prefix of `text`, or 0.
constexpr std::size_t superfluous_at(std::string_view text) {
  for (std::string_view const& word : superfluous)
    if (text[0] == word[0] && text.substr(0, word.size()) == word) return word.size();
  // The unnamed namespace of nvcc.
  return text[0] == '_' && text.substr(0, 11) == "_GLOBAL__N_" ? text.find("::") + 2 : 0;
}

/// Whether `spelled` begins with a list of character codes that ends in zero, as clang++ 14 spells
/// a `text`: {{115, 107, 105, 112, 0}}. The type is not in it, so arrays of numbers are told apart
/// by their values; codes after the tenth are elided: {{97, 98, 99, 100, 101, 102, 103, 104, 105,
/// 106, ...}}.
constexpr bool lists_characters(std::string_view spelled) {
  if (spelled.size() < 5 || spelled[0] != '{' || spelled[1] != '{') return false;
  for (std::size_t i = 2; i + 2 < spelled.size(); i += 2) {
    if (spelled.substr(i, 3) == "0}}" || spelled.substr(i, 5) == "...}}") return true;
    bool const negative = spelled[i] == '-';
    int code = 0;
    for (i += negative; i < spelled.size() && spelled[i] >= '0' && spelled[i] <= '9' && code < 128;
         ++i)
      code = 10 * code + spelled[i] - '0';
    bool const is_character =
        negative ? code <= 128 : (code >= ' ' && code < 128) || (code >= '\a' && code <= '\r');
    if (!is_character || spelled.substr(i, 2) != ", ") return false;
  }
  return false;
}

/// The position of the characters of a `Text` at the beginning of `spelled`, or 0 if there is none.
/// They are a literal, Text<5>{"skip"}, or a list where nvcc spells it or a character is not
/// printable: Text<5UL>{{'s', 'k', 'i', 'p', 0}}.
constexpr std::size_t characters_at(std::string_view spelled) {
  if (lists_characters(spelled)) return 1;
  if (spelled[0] != 'T' || spelled.substr(0, 5) != "Text<") return 0;
  std::size_t const end = spelled.find_first_not_of("0123456789UL", 5);
  return end != spelled.npos && spelled.substr(end, 2) == ">{" ? end + 2 : 0;
}

/// The character at `i` of a literal with escapes; advances `i` past it.
constexpr char read_quoted(std::string_view spelled, std::size_t& i) {
  if (spelled[i] != '\\') return spelled[i++];
  char const first = spelled[++i];
  if (first < '0' || first > '7') {
    std::size_t const letter = std::string_view("abtnvfr").find(first);  // codes 7 to 13
    return ++i, letter == spelled.npos ? first : static_cast<char>(7 + letter);
  }
  int code = 0;  // g++ spells a negative char in eleven octal digits
  for (std::size_t const end = i + (spelled.substr(i, 8) == "37777777" ? 11 : 3); i < end; ++i)
    code = (8 * code + spelled[i] - '0') % 256;
  return static_cast<char>(code);
}
/// The character at `i` of a list, 'c' or its code; advances `i` past it and its comma.
constexpr char read_listed(std::string_view spelled, std::size_t& i) {
  int code = 0;
  if (spelled[i] == '\'') {
    code = static_cast<unsigned char>(spelled[i + 1]);
    i += 3;
  } else {
    bool const negative = spelled[i] == '-';
    for (i += negative; spelled[i] >= '0' && spelled[i] <= '9'; ++i)
      code = 10 * code + spelled[i] - '0';
    if (negative) code = -code;
  }
  if (spelled[i] == ',') i += 2;
  return static_cast<char>(code);
}

/// Appends the literal of a `text` at the beginning of `spelled`. Returns the length of its
/// spelling, or 0 if there is none.
template <std::size_t Capacity>
constexpr std::size_t append_literal(std::string_view spelled,
                                     static_vector<char, Capacity>& name) {
  std::size_t i = characters_at(spelled);
  if (i == 0) return 0;
  bool const listed = spelled[i] == '{';
  name.push_back('"');
  for (++i; spelled[i] != (listed ? '}' : '"');) {
    if (listed && spelled[i] == '.') {  // the ellipsis of a long list in clang++ 14
      name.push_back(spelled[i++]);
      continue;
    }
    char const c = listed ? read_listed(spelled, i) : read_quoted(spelled, i);
    if (c == '"' || c == '\\') name.push_back('\\');
    if (c != '\0') name.push_back(c);
  }
  name.push_back('"');
  return i + 2;
}

/// Appends `Axes<1, 7>` for extents_of_window{1, 7} at the beginning of `spelled`. Returns the
/// length of its spelling, or 0 if there is none: clang++ 14 spells no type, only {1, 7}.
template <std::size_t Capacity>
constexpr std::size_t append_axes(std::string_view spelled, static_vector<char, Capacity>& name) {
  constexpr std::string_view in_detail = "detail::", type = "extents_of_window{";
  std::size_t i = spelled.substr(0, in_detail.size()) == in_detail ? in_detail.size() : 0;
  if (spelled.substr(i, type.size()) != type) return 0;
  for (char const c : std::string_view("Axes<")) name.push_back(c);
  for (i += type.size(); spelled[i] != '}'; ++i) {
    char const c = spelled[i];
    if (c == '-' || c == ',' || (c >= '0' && c <= '9')) name.push_back(c);
    if (c == ',') name.push_back(' ');
  }
  name.push_back('>');
  return i + 1;
}

/// A spelling without superfluous prefixes, with literals and `Axes` restored and one space after
/// each comma.
/// Works on single characters: a call of std::string_view's functions for each takes compilers far
/// longer.
template <std::size_t Capacity>
constexpr static_vector<char, Capacity> tidy_name(std::string_view spelled) {
  static_vector<char, Capacity> name;
  char const *at = spelled.data(), *const end = at + spelled.size();
  for (bool begins_a_name = true; at != end;) {
    if (begins_a_name) {
      std::string_view const rest(at, std::size_t(end - at));
      std::size_t skipped = superfluous_at(rest);
      if (skipped == 0) skipped = append_literal(rest, name);
      if (skipped == 0 && (*at == 'e' || *at == 'd')) skipped = append_axes(rest, name);
      at += skipped;
      if (skipped > 0) continue;
    }
    char const c = *at++, next = at != end ? *at : '\0';
    if (c == ' ' && next == '>') continue;
    name.items[name.count++] = c;
    if (c == ',' && next != ' ') name.push_back(' ');
    begins_a_name = !continues_a_name(c);
  }
  return name;
}

/// The name as a user writes it with `using namespace pp`: `Residual<LayerNorm, Attention<3>>`,
/// `Stash<"skip">`.
template <class T>
constexpr auto tidy_name_of = tidy_name<2 * spelled_name<T>().size()>(spelled_name<T>());

/// The name of T, the same under g++, clang++ and nvcc; it lives as long as the program.
template <class T>
constexpr std::string_view type_name() {
  return {tidy_name_of<T>.items, tidy_name_of<T>.size()};
}

}  // namespace pp::detail
