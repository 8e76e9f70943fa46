// SPDX-License-Identifier: BSL-1.0
//
// Message catalogues of GNU gettext, the .mo files in which programs have their translations: text
// in two languages, sentence by sentence, which every machine has.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/data/plural_rule.hpp>
#include <pipe/io/file_bytes.hpp>

namespace pp {

/// A message and its translations.
struct catalogue_message {
  std::string context;             ///< distinguishes equal messages; "": none
  std::string id;                  ///< the original
  std::string plural_id;           ///< the original for other numbers than 1; "": none
  std::vector<std::string> forms;  ///< translations: one, or one for each plural form
};

/// The messages of a .mo file in either byte order, as UTF-8.
class message_catalogue {
 public:
  /// Reads a file.
  ///
  /// throws: file_error if it cannot be read; data_error if it violates the format, or for a text
  ///         that is not UTF-8
  explicit message_catalogue(std::string const& path)
      : message_catalogue(path, detail::file_bytes(path)) {}
  /// Reads the bytes of a file. path: for messages.
  message_catalogue(std::string const& path, std::string_view bytes) : path_(path), bytes_(bytes) {
    read();
    bytes_ = {};
  }

  /// All messages but the header, in the order of the file.
  std::vector<catalogue_message> const& messages() const { return messages_; }

  /// A field of the header, as "Language"; "" if there is none.
  std::string field(std::string_view name) const {
    for (std::string_view left = header_; !left.empty();) {
      std::string_view line = left.substr(0, left.find('\n'));
      left.remove_prefix(line.size() + (line.size() < left.size() ? 1 : 0));
      if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
      line.remove_prefix(name.size() + 1);
      while (line.starts_with(' ')) line.remove_prefix(1);
      while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
      return std::string(line);
    }
    return "";
  }

  /// Number of plural forms of the language; 2 if the header does not say it.
  unsigned long plural_forms() const { return plural_forms_; }
  /// The index of the plural form for n things: by the header's rule, or n != 1.
  ///
  /// law:    below plural_forms()
  /// throws: data_error for a rule without a value below plural_forms() for n
  unsigned long form_of(unsigned long n) const {
    unsigned long form = 0;
    try {
      form = detail::plural_expression::value(rule_, n);
    } catch (data_error const& e) {
      refuse(e.what());
    }
    if (form >= plural_forms_)
      refuse("the plural rule gives form " + std::to_string(form) + " for " + std::to_string(n) +
             ", expected one below " + std::to_string(plural_forms_));
    return form;
  }

 private:
  /// The maximum number of plural forms, more than any language has: a text of zero bytes would be
  /// a form for each byte.
  static constexpr std::size_t most_forms = 100;

  [[noreturn]] void refuse(std::string const& why) const {
    throw data_error("'" + path_ + "': " + why);
  }

  std::uint32_t word(std::uint64_t at) const {
    std::uint32_t value = 0;
    for (std::uint64_t i = 0; i < 4; ++i)
      value = value << 8 | std::uint8_t(bytes_[at + (is_big_endian_ ? i : 3 - i)]);
    return value;
  }

  /// Text i of a table of lengths and places, without the NUL that ends it.
  std::string_view text(std::uint64_t table, std::uint64_t i) {
    std::uint64_t const length = word(table + 8 * i), at = word(table + 8 * i + 4);
    if (at + length >= bytes_.size() || bytes_[at + length] != 0)
      refuse("text " + std::to_string(i) + " does not end with a zero byte in the file");
    // Texts of a hostile file that all lie in one place would need memory in the square of its
    // size.
    if ((read_ += length) > bytes_.size()) refuse("its texts overlap");
    std::string_view const found = bytes_.substr(at, length);
    if (std::size_t const good = detail::valid_utf8_bytes(found); good != length)
      refuse("text " + std::to_string(i) + " is not UTF-8 at byte " + std::to_string(good));
    return found;
  }

  /// Reads the table: magic, version, number of messages, and the places of two lists of lengths
  /// and places. A hash table that may follow is of no use here.
  void read() {
    if (bytes_.size() < 28) refuse("expected the 28 bytes that a .mo file begins with");
    constexpr std::uint32_t magic = 0x950412de;
    is_big_endian_ = word(0) != magic;
    if (word(0) != magic) refuse("it does not begin with 0x950412de in one of the byte orders");
    if (word(4) >> 16 > 1)
      refuse("expected version 0 or 1 of .mo files, found " + std::to_string(word(4) >> 16));
    std::uint64_t const count = word(8), originals = word(12), translations = word(16);
    for (std::uint64_t const table : {originals, translations})
      if (table + 8 * count > bytes_.size())
        refuse("its " + std::to_string(count) + " messages do not fit its " +
               std::to_string(bytes_.size()) + " bytes");
    // The header is the translation of the empty text, and says how to read the other texts.
    for (std::uint64_t i = 0; i < count && header_.empty(); ++i)
      if (word(originals + 8 * i) == 0) header_ = header_of(translations, i);
    check_charset();
    read_plural_rule();
    messages_.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i)
      if (std::string_view const original = text(originals, i); !original.empty())
        messages_.push_back(message_of(original, text(translations, i)));
  }

  /// The header before its charset is known: any bytes.
  std::string header_of(std::uint64_t table, std::uint64_t i) const {
    std::uint64_t const length = word(table + 8 * i), at = word(table + 8 * i + 4);
    if (at + length >= bytes_.size()) refuse("its header is not in the file");
    return std::string(bytes_.substr(at, length));
  }

  /// throws: data_error if the header names another charset than UTF-8 or ASCII, which is part of
  /// it
  void check_charset() const {
    std::string const type = field("Content-Type");
    std::size_t const at = type.find("charset=");
    if (at == type.npos) return;  // the texts are checked in any case
    std::string charset = type.substr(at + 8);
    for (char& c : charset)
      if (c >= 'a' && c <= 'z') c = char(c - 'a' + 'A');
    if (charset != "UTF-8" && charset != "UTF8" && charset != "US-ASCII" && charset != "ASCII")
      refuse("its charset is " + detail::in_quotes(charset) + ", expected UTF-8");
  }

  /// Reads `nplurals=N; plural=EXPRESSION;`. Without this field the rule is that of English.
  void read_plural_rule() {
    std::string const rule = field("Plural-Forms");
    std::size_t const forms = rule.find("nplurals="), plural = rule.find("plural=");
    if (forms == rule.npos || plural == rule.npos) return;
    unsigned long count = 0;
    for (std::size_t at = forms + 9; at < rule.size() && rule[at] >= '0' && rule[at] <= '9'; ++at)
      if ((count = 10 * count + (unsigned long)(rule[at] - '0')) > most_forms) break;
    if (count < 1 || count > most_forms) {
      // Templates have `nplurals=INTEGER; plural=EXPRESSION;`.
      if (rule.substr(forms + 9, 7) == "INTEGER") return;
      refuse("expected 1 to " + std::to_string(most_forms) + " plural forms, found " +
             detail::in_quotes(rule));
    }
    plural_forms_ = count;
    rule_ = rule.substr(plural + 7);
    rule_ = rule_.substr(0, rule_.find(';'));
    form_of(1);
  }

  /// Takes the two texts of an entry apart: context, 0x04, original, 0, its plural; and the forms,
  /// with a 0 between them, if there is a plural.
  catalogue_message message_of(std::string_view original, std::string_view translation) const {
    catalogue_message m;
    if (std::size_t const end = original.find('\x04'); end != original.npos) {
      m.context = original.substr(0, end);
      original.remove_prefix(end + 1);
    }
    std::size_t const end = original.find('\0');
    m.id = original.substr(0, end);
    if (end != original.npos) m.plural_id = original.substr(end + 1);
    for (std::size_t next = 0; next != translation.npos;) {
      next = end == original.npos ? translation.npos : translation.find('\0');
      if (m.forms.size() == most_forms)
        refuse("a message has more than " + std::to_string(most_forms) + " plural forms");
      m.forms.emplace_back(translation.substr(0, next));
      if (next != translation.npos) translation.remove_prefix(next + 1);
    }
    return m;
  }

  std::string path_;
  std::string_view bytes_;  // while they are read
  bool is_big_endian_ = false;
  std::uint64_t read_ = 0;  // bytes of all texts read
  std::string header_, rule_ = "n != 1";
  unsigned long plural_forms_ = 2;
  std::vector<catalogue_message> messages_;
};

}  // namespace pp
