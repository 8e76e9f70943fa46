// SPDX-License-Identifier: BSL-1.0
//
// Mapping of parameter names between a model and the source of its weights: a file, or another
// model.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/utf8.hpp>

namespace pp::detail {

/// An entry of a name map: `here` in the model that is written, `there` in the source. Prefixes, if
/// each ends in a dot or is empty; otherwise whole names.
///
///     {"body.", "0.body."}    {"", "model."}    {"head.weight", "lm_head.weight"}
struct renamed {
  std::string here, there;
};

}  // namespace pp::detail

namespace pp {

/// Names of a model's parameters in a file or another model that has others: see load_weights.
using name_map = std::vector<detail::renamed>;

}  // namespace pp

namespace pp::detail {

/// Whether an entry's side is a prefix: it ends in a dot or is empty.
inline bool is_name_prefix(std::string_view name) { return name.empty() || name.back() == '.'; }

/// The source names of all names: the longest entry that matches replaces a name's beginning; names
/// without a match are unchanged.
///
/// throws: data_error for an entry of a prefix and a whole name, an entry that matches no name, two
///         entries for one name or prefix, and two names with the same source name
inline std::vector<std::string> names_there(std::vector<std::string> const& here,
                                            name_map const& map) {
  auto const text = [](renamed const& r) {
    return in_quotes(r.here) + " -> " + in_quotes(r.there);
  };
  auto const refuse = [](std::string const& why) { throw data_error("map of names: " + why); };
  for (renamed const& r : map) {
    if (is_name_prefix(r.here) != is_name_prefix(r.there))
      refuse(text(r) + " is a prefix and a whole name: a prefix ends in '.' or is empty");
    if (std::count_if(map.begin(), map.end(),
                      [&](renamed const& other) { return other.here == r.here; }) > 1)
      refuse("there are two entries for " + in_quotes(r.here));
  }
  std::vector<bool> applies(map.size());
  std::vector<std::string> all;
  std::map<std::string, std::string> taken;  // by the name there: the name here
  for (std::string const& name : here) {
    std::size_t best = map.size();
    for (std::size_t i = 0; i < map.size(); ++i) {
      bool const fits =
          is_name_prefix(map[i].here) ? name.starts_with(map[i].here) : name == map[i].here;
      if (!fits) continue;
      applies[i] = true;
      if (best == map.size() || map[i].here.size() > map[best].here.size()) best = i;
    }
    all.push_back(best == map.size() ? name : map[best].there + name.substr(map[best].here.size()));
    auto const [before, is_first] = taken.emplace(all.back(), name);
    if (!is_first)
      refuse("parameters " + in_quotes(before->second) + " and " + in_quotes(name) +
             " would both be " + in_quotes(all.back()));
  }
  for (std::size_t i = 0; i < map.size(); ++i)
    if (!applies[i]) refuse(text(map[i]) + " applies to no parameter of the model");
  return all;
}

}  // namespace pp::detail
