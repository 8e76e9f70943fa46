// SPDX-License-Identifier: BSL-1.0
//
// A JSON reader for untrusted files, and headers of files. The caller asks for the value that must
// come next, so a value of another kind is refused at its first byte. Nothing recurses, however
// deep a hostile text nests, and memory is only used for the strings that are returned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/function_ref.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/utf8.hpp>
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
  [[gnu::cold]] json_reader(std::string_view text, std::string_view about, char const* part = "")
      : context(about), text_(text), part_(part) {
    at_ = valid_utf8_bytes(text);
    if (at_ != text.size()) refuse({"UTF-8"});
    at_ = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
  }

  /// The beginning of every message: the file, and the part of it that is being read.
  kept_text context;

  /// Reads an object. one(name) is called before each value and must read it.
  /// `what`: what was expected, for the message. Repeated names are not refused here: one() is
  /// called for each of them.
  [[gnu::cold]] void object(char const* what, function_ref<void(std::string const&)> one) {
    if (!accept('{')) refuse({what});
    if (accept('}')) return;
    do {
      std::string const name = string("a name in quotes");
      if (!accept(':')) refuse({"':' after the name ", quotation(name)});
      one(name);
    } while (accept(','));
    if (!accept('}')) refuse({"',' or '}'"});
  }

  /// Reads an array. one() is called before each value and must read it.
  [[gnu::cold]] void array(char const* what, function_ref<void()> one) {
    if (!accept('[')) refuse({what});
    if (accept(']')) return;
    do one();
    while (accept(','));
    if (!accept(']')) refuse({"',' or ']'"});
  }

  /// Reads a string and resolves its escapes. `what`: what was expected, for the message.
  [[gnu::cold]] std::string string(char const* what) {
    if (!accept('"')) refuse({what});
    std::string value;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (static_cast<unsigned char>(text_[at_]) < 0x20)
        refuse({"a control character in a string as an escape"});
      if (text_[at_] == '\\')
        escape(value);
      else
        value += text_[at_++];
    }
    if (at_ == text_.size()) refuse({"'\"' at the end of a string"});
    ++at_;
    return value;
  }

  /// Reads a whole number that is not negative.
  ///
  /// law: result <= 2^63 - 1, so that a long holds it
  [[gnu::cold]] std::uint64_t whole_number() {
    skip_space();
    return digits_after(0);
  }

  /// Reads a whole number that may be negative.
  ///
  /// law: |result| <= 2^63 - 1
  [[gnu::cold]] std::int64_t integer() {
    bool const negative = next() == '-';
    std::int64_t const value = std::int64_t(digits_after(negative));
    return negative ? -value : value;
  }

  /// The first character of the value that comes next, which is not read; 0 at the end.
  char next() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  /// Reads a word, true, false or null, if it comes next. Returns whether it did.
  [[gnu::cold]] bool word(std::string_view expected) {
    skip_space();
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }

  /// Passes over a value of any kind. Brackets and strings are checked, and nothing else.
  [[gnu::cold]] void skip() {
    std::string open;  // the closing brackets of what is open, the innermost last
    do {
      char const c = next();
      if (c == '{' || c == '[')
        open += c == '{' ? '}' : ']', ++at_;
      else if (c == '"')
        string("a string");
      else if (!open.empty() && c == open.back())
        open.pop_back(), ++at_;
      else if (!open.empty() && (c == ',' || c == ':'))
        ++at_;
      else
        skip_number_or_word();
    } while (!open.empty());
  }

  /// Checks that only white space is left.
  [[gnu::cold]] void end() {
    skip_space();
    if (at_ < text_.size()) refuse({"nothing but white space after the end"});
  }

  /// Throws data_error at the current byte.
  [[noreturn, gnu::cold]] void refuse(text_parts expected) const {
    refuse(joined_text(expected),
           at_ < text_.size() ? quotation(text_.substr(at_, 1)) : piece("the end"));
  }

 private:
  /// Throws data_error at the current byte, which is the first of what was found.
  [[noreturn, gnu::cold]] void refuse(std::string_view expected, piece const& found) const {
    throw_error<data_error>(
        {context, ": byte ", at_, part_, ": expected ", expected, ", found ", found});
  }

  /// Reads the digits of a number that begins here, behind `sign` characters of a sign.
  [[gnu::cold]] std::uint64_t digits_after(std::size_t sign) {
    // All characters that numbers of JSON have, so that the message quotes a refused one in full.
    std::size_t end = at_;
    while (end < text_.size() &&
           std::string_view("+-.0123456789Ee").find(text_[end]) != std::string_view::npos)
      ++end;
    std::string_view const number = text_.substr(at_, end - at_), digits = number.substr(sign);
    if (number.empty()) refuse({"a whole number"});
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
    std::uint64_t value = 0;
    if (digits.empty()) refuse("a whole number", quotation(number));
    for (char const c : digits) {
      bool const digit = c >= '0' && c <= '9';
      if (!digit || (digits[0] == '0' && digits.size() > 1))
        refuse("a whole number", quotation(number));
      std::uint64_t const next = std::uint64_t(c - '0');
      // 10 * value + next > most, tested without overflow
      if (value > (most - next) / 10)
        refuse(sign > 0 ? "a number above -2^63" : "a number below 2^63", quotation(number));
      value = 10 * value + next;
    }
    at_ = end;
    return value;
  }

  [[gnu::cold]] void skip_number_or_word() {
    std::size_t const begin = at_;
    for (std::string_view const word : {"NaN", "Infinity", "-Infinity"})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return;
      }
    while (at_ < text_.size() &&
           ((text_[at_] >= '0' && text_[at_] <= '9') || (text_[at_] >= 'a' && text_[at_] <= 'z') ||
            std::string_view("+-.E").find(text_[at_]) != text_.npos))
      ++at_;
    if (at_ == begin) refuse({"a value"});
  }
  void skip_space() {
    while (at_ < text_.size() &&
           std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  /// Skips white space, and reads the next character if it is c. Returns whether it was.
  bool accept(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  /// Reads an escape from its backslash on, and appends the character that it stands for as UTF-8.
  [[gnu::cold]] void escape(std::string& value) {
    constexpr std::string_view names = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    ++at_;
    char const name = at_ < text_.size() ? text_[at_] : ' ';
    if (std::size_t const known = names.find(name); known != names.npos) {
      value += meanings[known];
      ++at_;
    } else if (name == 'u') {
      ++at_;
      append_utf8(value, code_point());
    } else {
      refuse({"an escape of JSON"});
    }
  }
  /// Reads the four hexadecimal digits of an escape, or the two escapes of a surrogate pair.
  [[gnu::cold]] std::uint32_t code_point() {
    std::uint32_t const first = four_digits();
    if (first < 0xD800 || first > 0xDFFF) return first;
    bool const paired = first < 0xDC00 && text_.substr(at_, 2) == "\\u";
    if (!paired) refuse({"a surrogate that has its second half"});
    at_ += 2;
    std::uint32_t const second = four_digits();
    if (second < 0xDC00 || second > 0xDFFF) refuse({"the second half of a surrogate"});
    return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
  }
  /// Reads four hexadecimal digits, in upper or lower case.
  [[gnu::cold]] std::uint32_t four_digits() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      char const c = at_ < text_.size() ? text_[at_] : ' ';
      int const digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) refuse({"a hexadecimal digit"});
      value = 16 * value + std::uint32_t(digit);
    }
    return value;
  }

  std::string_view text_;
  char const* part_;  // of the file, after the number of a byte
  std::size_t at_ = 0;
};

}  // namespace pp::detail
