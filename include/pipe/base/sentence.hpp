// SPDX-License-Identifier: BSL-1.0
//
// Puts a message together from words and numbers. One function for all messages: chains of string additions in every place
// that may throw would be a good part of what a small program takes to compile.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>

namespace pp {

/// A piece of a sentence: a text that outlives the call, or an integer.
class piece {
 public:
  piece(char const* text) : text_(text) {}
  piece(std::string_view text) : text_(text) {}
  piece(std::string const& text) : text_(text) {}
  template <std::integral Number>
  piece(Number n) : number_(static_cast<long long>(n)), is_number_(true) {}

  void add_to(std::string& sentence) const {
    if (is_number_)
      sentence += std::to_string(number_);
    else
      sentence += text_;
  }

 private:
  std::string_view text_;
  long long number_ = 0;
  bool is_number_ = false;
};

/// sentence({"rank ", 3, " stopped"}) -> "rank 3 stopped"
PIPE_COLD PIPE_ONE_COPY inline std::string sentence(std::initializer_list<piece> pieces) {
  std::string all;
  for (piece const& p : pieces) p.add_to(all);
  return all;
}

/// Throws what says so.
template <class Error>
[[noreturn]] PIPE_COLD PIPE_ONE_COPY void complain(std::initializer_list<piece> pieces) {
  throw Error(sentence(pieces));
}

}  // namespace pp
