// SPDX-License-Identifier: BSL-1.0
//
// The rule by which a language chooses a form for a number, as message catalogues give it: an
// expression of C in n.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <pipe/base/error.hpp>
#include <pipe/base/utf8.hpp>

namespace pp::detail {

/// An expression of whole numbers, n, parentheses and the operators ?: || && == != < > <= >= + - *
/// / % !, evaluated while it is read. Both sides of a choice are read, and the value of one counts.
class plural_expression {
 public:
  /// The value for n. Products and sums are those of unsigned numbers.
  ///
  /// throws: data_error for a text that is no such expression, for parentheses and signs nested
  ///         more than 100 deep, and for a division by 0
  static unsigned long value(std::string_view text, unsigned long n) {
    plural_expression e(text, n);
    unsigned long const found = e.choice(true);
    if (e.at_ != text.size()) e.refuse("an operator");
    return found;
  }

 private:
  plural_expression(std::string_view text, unsigned long n) : text_(text), n_(n) { skip_space(); }

  [[noreturn]] void refuse(char const* expected) const {
    throw data_error("the plural rule " + in_quotes(text_) + ": expected " + expected +
                     " at byte " + std::to_string(at_));
  }
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool accept(std::string_view token) {
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    skip_space();
    return true;
  }

  /// counts: whether the value is used, so that 0 as a divisor is a fault.
  unsigned long choice(bool counts) {
    if (++depth_ > 100) refuse("less depth");
    unsigned long const condition = binary(0, counts);
    unsigned long found = condition;
    if (accept("?")) {
      unsigned long const yes = choice(counts && condition != 0);
      if (!accept(":")) refuse("':'");
      unsigned long const no = choice(counts && condition == 0);
      found = condition != 0 ? yes : no;
    }
    --depth_;
    return found;
  }
  /// Reads operators of a level, from left to right; they bind closer than operators of earlier
  /// levels.
  unsigned long binary(int level, bool counts) {
    static constexpr std::string_view operators[][4] = {
        {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == 6) return unary(counts);
    unsigned long left = binary(level + 1, counts);
    for (;;) {
      std::string_view found;
      for (std::string_view const op : operators[level])
        if (found.empty() && !op.empty() && accept(op)) found = op;
      if (found.empty()) return left;
      bool const decided = (found == "||" && left != 0) || (found == "&&" && left == 0);
      unsigned long const right = binary(level + 1, counts && !decided);
      left = apply(found, left, right, counts);
    }
  }
  /// counts: whether 0 as a divisor is a fault; otherwise the result is 0.
  unsigned long apply(std::string_view op, unsigned long a, unsigned long b, bool counts) const {
    if (op == "||") return a != 0 || b != 0;
    if (op == "&&") return a != 0 && b != 0;
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    if (op == "<=") return a <= b;
    if (op == ">=") return a >= b;
    if (op == "<") return a < b;
    if (op == ">") return a > b;
    if (op == "+") return a + b;
    if (op == "-") return a - b;
    if (op == "*") return a * b;
    if (b == 0 && counts) refuse("a divisor other than 0");
    return b == 0 ? 0 : op == "/" ? a / b : a % b;
  }
  /// Reads a number, n, an expression in parentheses, or one of these negated.
  unsigned long unary(bool counts) {
    if (++depth_ > 100) refuse("less depth");
    unsigned long found = 0;
    if (accept("!")) {
      found = unary(counts) == 0;
    } else if (accept("(")) {
      found = choice(counts);
      if (!accept(")")) refuse("')'");
    } else if (accept("n")) {
      found = n_;
    } else {
      if (at_ == text_.size() || text_[at_] < '0' || text_[at_] > '9') refuse("a number or n");
      for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
        if (found > 100'000'000) refuse("a number below 10^9");
        found = 10 * found + (unsigned long)(text_[at_] - '0');
      }
      skip_space();
    }
    --depth_;
    return found;
  }

  std::string_view text_;
  unsigned long n_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace pp::detail
