// SPDX-License-Identifier: BSL-1.0
//
// Definitions of weights/name_map.hpp.

#include <cstddef>

namespace pp::detail {

PIPE_DEFINED void refuse_map(text_parts why) { throw_joined<data_error>({"map of names: "}, why); }
PIPE_DEFINED bool is_passed_over(std::string_view name, name_map const& map) {
  for (renamed const& r : map)
    if (r.passed_over && (is_name_prefix(r.there) ? name.starts_with(r.there) : name == r.there))
      return true;
  return false;
}
PIPE_DEFINED void require_distinct(row_list<tensors_there> const& all,
                                   row_list<kept_text> const& here) {
  name_index taken;
  row_list<std::size_t> taken_by;  // the number in `here`
  for (std::size_t i = 0; i < all.size(); ++i)
    for (kept_text const& there : all[i].names) taken.add(there), taken_by.push_back(i);
  taken.sort();
  for (std::size_t i = 0; i < taken.size(); ++i)
    if (taken.repeats(i))
      refuse_map({"parameters ", quotation(here[taken_by[std::size_t(taken.find(taken[i]))]]),
                  " and ", quotation(here[taken_by[i]]), " would both be ", quotation(taken[i])});
}
PIPE_DEFINED row_list<tensors_there> sources_there(row_list<kept_text> const& here,
                                                   name_map const& map) {
  auto const text = [](renamed const& r) {
    return joined_text({quotation(r.here), " -> ", quotation(r.there)});
  };
  for (renamed const& r : map) {
    if (r.passed_over) {
      if (!r.here.empty() || !r.further.empty() || r.transposed)
        refuse_map({text(r), " is passed over: it has only a name there"});
      continue;
    }
    if (is_name_prefix(r.here) != is_name_prefix(r.there))
      refuse_map({text(r), " is a prefix and a whole name: a prefix ends in '.' or is empty"});
    if (is_name_prefix(r.here) && !r.further.empty())
      refuse_map({text(r), " is a prefix, and only whole names are joined"});
    if (r.transposed && !r.further.empty())
      refuse_map({text(r), " is transposed, and only tensors that lie as here are joined"});
    int entries = 0;
    for (renamed const& other : map) entries += !other.passed_over && other.here == r.here;
    if (entries > 1) refuse_map({"there are two entries for ", quotation(r.here)});
  }
  row_list<bool> applies(map.size());
  row_list<tensors_there> all;
  for (std::string_view const name : here) {
    std::size_t best = map.size();
    for (std::size_t i = 0; i < map.size(); ++i) {
      if (map[i].passed_over) continue;
      bool const fits =
          is_name_prefix(map[i].here) ? name.starts_with(map[i].here) : name == map[i].here;
      if (!fits) continue;
      applies[i] = true;
      if (best == map.size() || map[i].here.size() > map[best].here.size()) best = i;
    }
    auto& [names, transposed] = all.push_back({});
    if (best == map.size()) {
      names.push_back(name);
      continue;
    }
    names.push_back(joined_text({map[best].there, name.substr(map[best].here.size())}));
    for (std::string const& further : map[best].further) names.push_back(further);
    transposed = map[best].transposed;
  }
  require_distinct(all, here);
  for (std::size_t i = 0; i < map.size(); ++i)
    if (!applies[i] && !map[i].passed_over)
      refuse_map({text(map[i]), " applies to no parameter of the model"});
  return all;
}
PIPE_DEFINED source_names::source_names(name_map const& map)
    : map_(&map), there_(&mapped), passes_over_([](std::string_view name, name_map const& by) {
        return is_passed_over(name, by);
      }) {}
PIPE_DEFINED row_list<tensors_there> source_names::unmapped(row_list<kept_text> const& here,
                                                            name_map const*) {
  row_list<tensors_there> all;
  for (kept_text const& name : here) all.push_back({}).names.push_back(name);
  require_distinct(all, here);
  return all;
}
PIPE_DEFINED row_list<tensors_there> source_names::mapped(row_list<kept_text> const& here,
                                                          name_map const* map) {
  return sources_there(here, *map);
}
PIPE_DEFINED row_list<kept_text> single_names(row_list<tensors_there> const& sources) {
  row_list<kept_text> all;
  for (auto const& [names, transposed] : sources) {
    if (names.size() > 1)
      refuse_map({quotation(names[0]), " and ", quotation(names[1]),
                  ": only weights that are loaded from a file are joined"});
    all.push_back(names[0]);
  }
  return all;
}
PIPE_DEFINED row_list<kept_text> names_there(row_list<kept_text> const& here, name_map const& map) {
  auto const sources = sources_there(here, map);
  for (auto const& [names, transposed] : sources)
    if (transposed) refuse_map({quotation(names[0]), ": only weights in files are transposed"});
  return single_names(sources);
}

}  // namespace pp::detail
