// SPDX-License-Identifier: BSL-1.0
//
// Definitions of io/json_reader.hpp.

#include <limits>

#include <pipe/base/utf8.hpp>

namespace pp::detail {

PIPE_DEFINED json_reader::json_reader(std::string_view text, std::string_view about,
                                      char const* part)
    : context(about), text_(text), part_(part) {
  at_ = valid_utf8_bytes(text);
  if (at_ != text.size()) refuse({"UTF-8"});
  at_ = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
}
PIPE_DEFINED void json_reader::object(char const* what,
                                      function_ref<void(std::string const&)> one) {
  if (!accept('{')) refuse({what});
  if (accept('}')) return;
  do {
    std::string const name = string("a name in quotes");
    if (!accept(':')) refuse({"':' after the name ", quotation(name)});
    one(name);
  } while (accept(','));
  if (!accept('}')) refuse({"',' or '}'"});
}
PIPE_DEFINED void json_reader::array(char const* what, function_ref<void()> one) {
  if (!accept('[')) refuse({what});
  if (accept(']')) return;
  do one();
  while (accept(','));
  if (!accept(']')) refuse({"',' or ']'"});
}
PIPE_DEFINED std::string json_reader::string(char const* what) {
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
PIPE_DEFINED std::uint64_t json_reader::whole_number() {
  skip_space();
  return digits_after(0);
}
PIPE_DEFINED std::int64_t json_reader::integer() {
  bool const negative = next() == '-';
  std::int64_t const value = std::int64_t(digits_after(negative));
  return negative ? -value : value;
}
PIPE_DEFINED char json_reader::next() {
  skip_space();
  return at_ < text_.size() ? text_[at_] : '\0';
}
PIPE_DEFINED bool json_reader::word(std::string_view expected) {
  skip_space();
  if (!text_.substr(at_).starts_with(expected)) return false;
  at_ += expected.size();
  return true;
}
PIPE_DEFINED void json_reader::skip() {
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
PIPE_DEFINED void json_reader::end() {
  skip_space();
  if (at_ < text_.size()) refuse({"nothing but white space after the end"});
}
PIPE_DEFINED void json_reader::refuse(text_parts expected) const {
  refuse(joined_text(expected),
         at_ < text_.size() ? quotation(text_.substr(at_, 1)) : piece("the end"));
}
PIPE_DEFINED void json_reader::refuse(std::string_view expected, piece const& found) const {
  throw_error<data_error>(
      {context, ": byte ", at_, part_, ": expected ", expected, ", found ", found});
}
PIPE_DEFINED std::uint64_t json_reader::digits_after(std::size_t sign) {
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
PIPE_DEFINED void json_reader::skip_number_or_word() {
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
PIPE_DEFINED bool json_reader::accept(char c) {
  skip_space();
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}
PIPE_DEFINED void json_reader::escape(std::string& value) {
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
PIPE_DEFINED std::uint32_t json_reader::code_point() {
  std::uint32_t const first = four_digits();
  if (first < 0xD800 || first > 0xDFFF) return first;
  bool const paired = first < 0xDC00 && text_.substr(at_, 2) == "\\u";
  if (!paired) refuse({"a surrogate that has its second half"});
  at_ += 2;
  std::uint32_t const second = four_digits();
  if (second < 0xDC00 || second > 0xDFFF) refuse({"the second half of a surrogate"});
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}
PIPE_DEFINED std::uint32_t json_reader::four_digits() {
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

}  // namespace pp::detail
