// SPDX-License-Identifier: BSL-1.0
//
// A JSON reader for untrusted files, and headers of files. The caller asks for the value that must
// come next, so a value of another kind is refused at its first byte. Nothing recurses, however
// deep a hostile text nests, and memory is only used for the strings that are returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/io/kept_text.hpp>

namespace pp::detail {

/// Reads `text` from its beginning to its end by RFC 8259, except that numbers are whole. A
/// byte-order mark before the text, which editors write, is passed over; so are NaN,
/// Infinity and -Infinity in a value that is skipped, as Python's json writes them.
///
/// throws: data_error from every function: `context`, the byte, what was expected and what was
///         found
class json_reader {
 public:
  /// Checks at once that the text is UTF-8. `about`: the first `context`. `part`: what follows the
  /// number of a byte in messages, if the text is a part of the file.
  ///
  /// needs: the characters of `text` outlive the reader
  [[gnu::cold]] json_reader(std::string_view text, std::string_view about, char const* part = "");

  /// The beginning of every message: the file, and the part of it that is being read.
  kept_text context;

  /// Reads an object. one(name) is called before each value and must read it.
  /// `what`: what was expected, for the message. Repeated names are not refused here: one() is
  /// called for each of them.
  [[gnu::cold]] void object(char const* what, function_ref<void(std::string const&)> one);

  /// Reads an array. one() is called before each value and must read it.
  [[gnu::cold]] void array(char const* what, function_ref<void()> one);

  /// Reads a string and resolves its escapes. `what`: what was expected, for the message.
  [[gnu::cold]] std::string string(char const* what);

  /// Reads a whole number that is not negative.
  ///
  /// law: result <= 2^63 - 1, so that a long holds it
  [[gnu::cold]] std::uint64_t whole_number();

  /// Reads a whole number that may be negative.
  ///
  /// law: |result| <= 2^63 - 1
  [[gnu::cold]] std::int64_t integer();

  /// The first character of the value that comes next, which is not read; 0 at the end.
  char next();

  /// Reads a word, true, false or null, if it comes next. Returns whether it did.
  [[gnu::cold]] bool word(std::string_view expected);

  /// Passes over a value of any kind. Brackets and strings are checked, and nothing else.
  [[gnu::cold]] void skip();

  /// Checks that only white space is left.
  [[gnu::cold]] void end();

  /// Throws data_error at the current byte.
  [[noreturn, gnu::cold]] void refuse(text_parts expected) const;

 private:
  /// Throws data_error at the current byte, which is the first of what was found.
  [[noreturn, gnu::cold]] void refuse(std::string_view expected, piece const& found) const;

  /// Reads the digits of a number that begins here, behind `sign` characters of a sign.
  [[gnu::cold]] std::uint64_t digits_after(std::size_t sign);

  [[gnu::cold]] void skip_number_or_word();
  void skip_space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  /// Skips white space, and reads the next character if it is c. Returns whether it was.
  bool accept(char c);

  /// Reads an escape from its backslash on, and appends the character that it stands for as UTF-8.
  [[gnu::cold]] void escape(std::string& value);
  /// Reads the four hexadecimal digits of an escape, or the two escapes of a surrogate pair.
  [[gnu::cold]] std::uint32_t code_point();
  /// Reads four hexadecimal digits, in upper or lower case.
  [[gnu::cold]] std::uint32_t four_digits();

  std::string_view text_;
  char const* part_;  // of the file, after the number of a byte
  std::size_t at_ = 0;
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/io/json_reader.inl>
#endif
