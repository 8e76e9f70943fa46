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
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/utf8.hpp>

namespace pp::detail {

/// An entry of a name map: `here` in the model that is written, `there` in the source. Prefixes, if
/// each ends in a dot or is empty; otherwise whole names. `further`: the tensors that follow
/// `there` along the first extent in files, where the source has a parameter in several.
///
///     {"body.", "0.body."}    {"", "model."}    {"head.weight", "lm_head.weight"}
///     {"in_proj_weight", "query.weight", {"key.weight", "value.weight"}}
struct renamed {
  std::string here, there;
  std::vector<std::string> further = {};
};

}  // namespace pp::detail

namespace pp {

/// Names of a model's parameters in a file or another model that has others: see load_weights.
using name_map = std::vector<detail::renamed>;

}  // namespace pp

namespace pp::detail {

/// Whether an entry's side is a prefix: it ends in a dot or is empty.
inline bool is_name_prefix(std::string_view name) { return name.empty() || name.back() == '.'; }

/// The source names of all names, several for what is joined: the longest entry that matches
/// replaces a name's beginning; names without a match are unchanged.
///
/// throws: data_error for an entry of a prefix and a whole name, a prefix with further tensors, an
///         entry that matches no name, two entries for one name or prefix, and two names with the
///         same source name
inline std::vector<std::vector<std::string>> sources_there(std::vector<std::string> const& here,
                                                           name_map const& map) {
  auto const text = [](renamed const& r) {
    return in_quotes(r.here) + " -> " + in_quotes(r.there);
  };
  auto const refuse = [](std::string const& why) { throw data_error("map of names: " + why); };
  for (renamed const& r : map) {
    if (is_name_prefix(r.here) != is_name_prefix(r.there))
      refuse(text(r) + " is a prefix and a whole name: a prefix ends in '.' or is empty");
    if (is_name_prefix(r.here) && !r.further.empty())
      refuse(text(r) + " is a prefix, and only whole names are joined");
    if (std::count_if(map.begin(), map.end(),
                      [&](renamed const& other) { return other.here == r.here; }) > 1)
      refuse("there are two entries for " + in_quotes(r.here));
  }
  std::vector<bool> applies(map.size());
  std::vector<std::vector<std::string>> all;
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
    std::vector<std::string>& names = all.emplace_back();
    if (best == map.size()) {
      names = {name};
    } else {
      names = map[best].further;
      names.insert(names.begin(), map[best].there + name.substr(map[best].here.size()));
    }
    for (std::string const& there : names) {
      auto const [before, is_first] = taken.emplace(there, name);
      if (!is_first)
        refuse("parameters " + in_quotes(before->second) + " and " + in_quotes(name) +
               " would both be " + in_quotes(there));
    }
  }
  for (std::size_t i = 0; i < map.size(); ++i)
    if (!applies[i]) refuse(text(map[i]) + " applies to no parameter of the model");
  return all;
}

/// The same where nothing is joined. Throws data_error for an entry with further tensors, too.
inline std::vector<std::string> names_there(std::vector<std::string> const& here,
                                            name_map const& map) {
  std::vector<std::string> all;
  for (std::vector<std::string>& names : sources_there(here, map)) {
    if (names.size() > 1)
      throw data_error("map of names: " + in_quotes(names[0]) + " and " + in_quotes(names[1]) +
                       ": only weights that are loaded from a file are joined");
    all.push_back(std::move(names[0]));
  }
  return all;
}

}  // namespace pp::detail
