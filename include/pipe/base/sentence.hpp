// SPDX-License-Identifier: BSL-1.0
//
// Messages composed of words and numbers. One out-of-line function serves all messages and
// instantiates no std::string, which every C++20 program would compile for itself: the messages of
// a small program would be a good part of its compile time.
#pragma once

#include <concepts>
#include <cstring>
#include <initializer_list>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/real_text.hpp>

namespace pp::detail {

/// A part of a sentence: an integer, a real number (9 digits), or a text that outlives the call.
class piece {
 public:
  piece(char const* text) : piece(std::string_view(text)) {}
  piece(std::string_view text)
      : text_(text.empty() ? "" : text.data()), number_(static_cast<long long>(text.size())) {}
  template <std::integral Number>
  piece(Number n) : number_(static_cast<long long>(n)) {}
  piece(double x) : real_(x), is_real_(true) {}

  /// The number of characters.
  long size() const {
    char digits[most_digits];
    return text_ != nullptr ? long(number_) : print(digits);
  }
  /// Returns the number of characters written.
  long write(char* to) const {
    if (text_ == nullptr) return print(to);
    std::memcpy(to, text_, std::size_t(number_));
    return long(number_);
  }

 private:
  static constexpr int most_digits = 32;  // of a number

  long print(char* to) const {
    if (!is_real_) return print_integer(to);
    real_text const text(real_, 9);  // has the characters
    std::string_view const digits = text;
    std::memcpy(to, digits.data(), digits.size());
    return long(digits.size());
  }

  /// std::to_chars would compile its code for all 35 bases.
  long print_integer(char* to) const {
    unsigned long long const n = static_cast<unsigned long long>(number_);
    unsigned long long rest = number_ < 0 ? 0 - n : n;
    char digits[most_digits];  // from the last
    int count = 0;
    do digits[count++] = static_cast<char>('0' + rest % 10);
    while ((rest /= 10) > 0);
    char* end = to;
    if (number_ < 0) *end++ = '-';
    while (count > 0) *end++ = digits[--count];
    return end - to;
  }

  char const* text_ = nullptr;  // null for a number
  long long number_ = 0;        // the integer, or the length of the text
  double real_ = 0;
  bool is_real_ = false;
};

/// The parts joined, with a terminating zero: sentence({"rank ", 3, " stopped"}).begin() is
/// "rank 3 stopped".
[[gnu::cold]] PIPE_ONE_COPY inline heap_array<char> sentence(std::initializer_list<piece> pieces) {
  long size = 0;
  for (piece const& p : pieces) size += p.size();
  heap_array<char> all(size + 1);
  char* end = all.begin();
  for (piece const& p : pieces) {
    end += p.write(end);
  }
  return all;
}

/// Throws an Error with the joined parts as its text.
template <class Error>
[[noreturn, gnu::cold]] PIPE_ONE_COPY void throw_error(std::initializer_list<piece> pieces) {
  throw Error(sentence(pieces).begin());
}

}  // namespace pp::detail
