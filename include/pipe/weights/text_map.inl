// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/text_map.hpp.

#include <utility>

#include <pipe/base/joined_text.hpp>

namespace pp::detail {

PIPE_DEFINED text_map::text_map(std::initializer_list<entry> entries) {
  row_list<entry> all = entries;
  take(all);
}
PIPE_DEFINED PIPE_ONE_COPY text_map::entry const* text_map::find(std::string_view name) const {
  entry const* at = begin();
  for (std::size_t left = size(); left > 0;) {
    std::size_t const half = left / 2;
    if (at[half].first.view().compare(name) < 0)
      at += half + 1, left -= half + 1;
    else
      left = half;
  }
  return at != end() && at->first == name ? at : end();
}
PIPE_DEFINED kept_text const& text_map::at(std::string_view name) const {
  entry const* const found = find(name);
  if (found == end()) throw_error<data_error>({"no text has the name ", quotation(name)});
  return found->second;
}
PIPE_DEFINED void text_map::set(std::string_view name, std::string_view text) {
  row_list<entry> all;
  all.push_back({name, text});
  for (entry& e : entries_) all.push_back(std::move(e));
  take(all);
}
PIPE_DEFINED kept_text const* text_map::take(row_list<entry>& entries) {
  kept_text const* twice = nullptr;
  entries_.clear();
  for (std::size_t const i : sorted(entries.size(), [&](std::size_t a, std::size_t b) {
         return entries[a].first.view().compare(entries[b].first) < 0;
       }))
    if (!entries_.empty() && entries_.back().first == entries[i].first)
      twice = &entries[i].first;
    else
      entries_.push_back(std::move(entries[i]));
  return twice;
}
PIPE_DEFINED safetensors_metadata metadata_of(std::initializer_list<metadata_entry> entries) {
  row_list<text_map::entry> list;
  for (metadata_entry const& e : entries) list.push_back({e.name, e.text});
  safetensors_metadata all;
  all.take(list);
  return all;
}

}  // namespace pp::detail
