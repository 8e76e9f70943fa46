// SPDX-License-Identifier: BSL-1.0
//
// Definitions of base/sentence.hpp.

#include <pipe/base/real_text.hpp>

namespace pp::detail {

PIPE_DEFINED std::string_view piece::text() const {
  char const* const begin = static_cast<char const*>(at_);
  return {begin, number_ == unknown ? std::strlen(begin) : std::size_t(number_)};
}
PIPE_DEFINED PIPE_ONE_COPY long piece::write_text(piece const& of, char* to) {
  std::string_view const text = of.text();
  if (to != nullptr && !text.empty()) std::memcpy(to, text.data(), text.size());
  return long(text.size());
}
PIPE_DEFINED PIPE_ONE_COPY long piece::write_real(piece const& of, char* to) {
  real_text const text(std::bit_cast<double>(of.number_), 9);  // has the characters
  std::string_view const digits = text;
  if (to != nullptr) std::memcpy(to, digits.data(), digits.size());
  return long(digits.size());
}
PIPE_DEFINED PIPE_ONE_COPY long piece::write_natural(piece const& of, char* to) {
  return write_digits(static_cast<unsigned long long>(of.number_), false, to);
}
PIPE_DEFINED PIPE_ONE_COPY long piece::write_integer(piece const& of, char* to) {
  unsigned long long const n = static_cast<unsigned long long>(of.number_);
  return of.number_ < 0 ? write_digits(0 - n, true, to) : write_digits(n, false, to);
}
PIPE_DEFINED PIPE_ONE_COPY long piece::write_digits(unsigned long long rest, bool is_negative,
                                                    char* to) {
  char digits[32];  // from the last
  long count = 0;
  do digits[count++] = static_cast<char>('0' + rest % 10);
  while ((rest /= 10) > 0);
  if (to != nullptr) {
    if (is_negative) *to++ = '-';
    for (long i = count; i > 0;) *to++ = digits[--i];
  }
  return count + is_negative;
}
PIPE_DEFINED PIPE_ONE_COPY heap_array<char> sentence(std::initializer_list<piece> pieces) {
  long size = 0;
  for (piece const& p : pieces) size += p.size();
  heap_array<char> all(size + 1);
  char* end = all.begin();
  for (piece const& p : pieces) {
    end += p.write(end);
  }
  return all;
}

}  // namespace pp::detail
