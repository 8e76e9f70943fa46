// SPDX-License-Identifier: BSL-1.0
//
// Messages composed of words and numbers. One out-of-line function serves all messages and
// instantiates no std::string, which every C++20 program would compile for itself: the messages of
// a small program would be a good part of its compile time.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>

namespace pp::detail {

/// A part of a sentence: an integer, a real number (9 digits), or a text that outlives the call, as
/// it is or in quotes (see base/joined_text.hpp).
class piece {
 public:
  piece(char const* text) : at_(text), number_(unknown), write_(write_text) {}
  piece(std::string_view text)
      : at_(text.data()), number_(static_cast<long long>(text.size())), write_(write_text) {}
  /// A std::string, too.
  template <std::convertible_to<std::string_view> Text>
    requires(!std::is_array_v<Text>)
  piece(Text const& text) : piece(std::string_view(text)) {}
  template <std::integral Number>
  piece(Number n)
      : number_(static_cast<long long>(n)),
        write_(std::is_unsigned_v<Number> ? write_natural : write_integer) {}
  piece(double x) : number_(std::bit_cast<long long>(x)), write_(write_real) {}
  /// A text that `spell` writes: see write().
  piece(std::string_view text, long (*spell)(piece const& of, char* to)) : piece(text) {
    write_ = spell;
  }

  /// The number of characters.
  long size() const { return write_(*this, nullptr); }
  /// Returns the number of characters written; none are, where `to` is null.
  long write(char* to) const { return write_(*this, to); }
  /// The text of a piece that is one.
  std::string_view text() const;

 private:
  static constexpr long long unknown = -1;  // the length of a text that ends with a zero

  static long write_text(piece const& of, char* to);
  static long write_real(piece const& of, char* to);
  static long write_natural(piece const& of, char* to);
  static long write_integer(piece const& of, char* to);
  /// std::to_chars would compile its code for all 35 bases.
  static long write_digits(unsigned long long rest, bool is_negative, char* to);

  void const* at_ = nullptr;  // a text
  long long number_;          // the integer, the bits of the real number, or the length of the text
  long (*write_)(piece const&, char*);
};

/// The parts joined, with a terminating zero: sentence({"rank ", 3, " stopped"}).begin() is
/// "rank 3 stopped".
[[gnu::cold]] heap_array<char> sentence(std::initializer_list<piece> pieces);

/// Throws an Error with the joined parts as its text.
template <class Error>
[[noreturn, gnu::cold]] PIPE_ONE_COPY void throw_error(std::initializer_list<piece> pieces) {
  throw Error(sentence(pieces).begin());
}

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/base/sentence.inl>
#endif
