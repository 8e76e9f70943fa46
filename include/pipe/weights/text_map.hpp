// SPDX-License-Identifier: BSL-1.0
//
// Texts by name: the metadata of a file, or the files of an index.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/io/sorted.hpp>

namespace pp::detail {

/// Texts by name, in the order of the names' bytes, with the calls of std::map that programs use.
class text_map {
 public:
  /// A name and its text.
  struct entry {
    static constexpr bool moves_by_bytes = true;
    kept_text first, second;
    friend bool operator==(entry const& a, entry const& b) {
      return a.first == b.first && a.second == b.second;
    }
  };

  text_map() = default;
  /// Of several texts of one name, the first is taken.
  [[gnu::cold]] text_map(std::initializer_list<entry> entries);
  /// Another map, such as a std::map of strings.
  template <class Map>
    requires requires(Map const& from) {
      std::string_view(from.begin()->first);
      std::string_view(from.begin()->second);
    }
  text_map(Map const& from) {
    row_list<entry> all;
    for (auto const& [name, text] : from)
      all.push_back({std::string_view(name), std::string_view(text)});
    take(all);
  }

  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  entry const* begin() const { return entries_.begin(); }
  entry const* end() const { return entries_.end(); }
  /// The entry of a name, or end().
  [[gnu::cold]] entry const* find(std::string_view name) const;
  bool contains(std::string_view name) const { return find(name) != end(); }
  /// throws: data_error if there is no such name
  [[gnu::cold]] kept_text const& at(std::string_view name) const;
  /// Sets the text of a name.
  ///
  /// cost: moves of all entries
  [[gnu::cold]] void set(std::string_view name, std::string_view text);
  /// Takes entries in any order, in place of those that it has.
  ///
  /// returns: a name that occurs several times, of which the first text is taken; null: none does
  [[gnu::cold]] kept_text const* take(row_list<entry>& entries);
  friend bool operator==(text_map const& a, text_map const& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(a.entries_[i] == b.entries_[i])) return false;
    return true;
  }

 private:
  row_list<entry> entries_;
};

/// User-defined texts of a file, by name.
using safetensors_metadata = text_map;
/// A name and its text.
struct metadata_entry {
  std::string_view name, text;
};
[[gnu::cold]] safetensors_metadata metadata_of(std::initializer_list<metadata_entry> entries);

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/weights/text_map.inl>
#endif
