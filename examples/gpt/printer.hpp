// SPDX-License-Identifier: BSL-1.0
//
// Prints what a model writes, byte by byte as it comes: a model that has learned little writes
// bytes that are no text.
#pragma once

#include <cstdio>
#include <string>

/// Prints whole UTF-8 characters. What is none, or would upset a terminal, comes out as `?`; the
/// end of a document, a zero, as a new line.
///
/// law: the output is valid UTF-8
class printer {
 public:
  void put(unsigned char c) {
    if (missing_ > 0 && c >= least_ && c <= most_) {
      held_ += char(c);
      least_ = 0x80, most_ = 0xBF;
      if (--missing_ == 0) print(held_);
      return;
    }
    end();
    missing_ = c < 0xC2 ? 0 : c < 0xE0 ? 1 : c < 0xF0 ? 2 : c < 0xF5 ? 3 : 0;
    // What may follow the first byte: no longer spelling than needed, no surrogate, no control,
    // nothing past U+10FFFF.
    least_ = c == 0xC2 || c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    most_ = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (missing_ > 0)
      held_ = char(c);
    else if (c == 0)
      print("\n");
    else
      print((c >= ' ' && c < 0x7F) || c == '\n' || c == '\t' ? std::string(1, char(c)) : "?");
  }

  /// No more bytes follow: a character begun is broken off.
  void end() {
    if (missing_ > 0) print("?");
    missing_ = 0;
  }

 private:
  static void print(std::string const& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  std::string held_;
  int missing_ = 0;
  unsigned least_ = 0, most_ = 0;
};
