// SPDX-License-Identifier: BSL-1.0
//
// Mapping of parameter names between a model and the source of its weights: a file, or another
// model.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/base/utf8.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/io/sorted.hpp>

namespace pp::detail {

/// An entry of a name map: `here` is a name in the model that is written, `there` a name in the
/// source. Both are prefixes if each ends in a dot or is empty; otherwise whole names.
///
///     {"body.", "0.body."}    {"", "model."}    {"head.weight", "lm_head.weight"}
///     {"in_proj_weight", "query.weight", {"key.weight", "value.weight"}}
///     {.here = "fc.", .there = "c_fc.", .transposed = true}
///     {.there = "h.0.attn.bias", .passed_over = true}
struct renamed {
  std::string here = {}, there = {};
  /// The tensors that follow `there` along the first extent, where the source has one parameter as
  /// several tensors.
  std::vector<std::string> further = {};
  /// The source stores matrices transposed: [inputs, outputs], as a Conv1D does.
  bool transposed = false;
  /// The source's tensors with this name or prefix are no parameters. `here` is empty.
  bool passed_over = false;
};

/// The names of a parameter in the source: several if tensors are joined.
struct tensors_there {
  static constexpr bool moves_by_bytes = true;

  row_list<kept_text> names;
  bool transposed = false;
};

}  // namespace pp::detail

namespace pp {

/// Names of a model's parameters in a file or another model, where these differ: see load_weights.
using name_map = std::vector<detail::renamed>;

}  // namespace pp

namespace pp::detail {

/// Whether an entry's side is a prefix: it ends in a dot or is empty.
inline bool is_name_prefix(std::string_view name) { return name.empty() || name.back() == '.'; }

/// Throws data_error with a reason.
[[noreturn, gnu::cold]] inline void refuse_map(text_parts why) {
  throw_joined<data_error>({"map of names: "}, why);
}

/// Whether a map passes over the tensor with this name in the source.
[[gnu::cold]] inline bool is_passed_over(std::string_view name, name_map const& map) {
  for (renamed const& r : map)
    if (r.passed_over && (is_name_prefix(r.there) ? name.starts_with(r.there) : name == r.there))
      return true;
  return false;
}

/// Throws data_error for two names with the same source name.
[[gnu::cold]] inline void require_distinct(row_list<tensors_there> const& all,
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

/// The source names of all names: the longest entry that matches replaces a name's beginning; names
/// without a match are unchanged.
///
/// throws: data_error for an entry of a prefix and a whole name, further tensors of a prefix or of
///         a transposed matrix, a `here` where tensors are passed over, an entry that matches no
///         name, two entries for one name or prefix, and two names with the same source name
[[gnu::cold]] inline row_list<tensors_there> sources_there(row_list<kept_text> const& here,
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

/// The names of parameters in a source: their own, or those of a map, which programs without a map
/// do not compile. Outlived by the map.
class source_names {
 public:
  /// Their own names.
  source_names() = default;
  [[gnu::cold]] explicit source_names(name_map const& map)
      : map_(&map), there_(&mapped), passes_over_([](std::string_view name, name_map const& by) {
          return is_passed_over(name, by);
        }) {}
  /// throws: as sources_there
  row_list<tensors_there> of(row_list<kept_text> const& here) const { return there_(here, map_); }
  bool passes_over(std::string_view name) const {
    return map_ != nullptr && passes_over_(name, *map_);
  }

 private:
  [[gnu::cold]] static row_list<tensors_there> unmapped(row_list<kept_text> const& here,
                                                        name_map const*) {
    row_list<tensors_there> all;
    for (kept_text const& name : here) all.push_back({}).names.push_back(name);
    require_distinct(all, here);
    return all;
  }
  [[gnu::cold]] static row_list<tensors_there> mapped(row_list<kept_text> const& here,
                                                      name_map const* map) {
    return sources_there(here, *map);
  }

  name_map const* map_ = nullptr;
  row_list<tensors_there> (*there_)(row_list<kept_text> const&, name_map const*) = &unmapped;
  bool (*passes_over_)(std::string_view, name_map const&) = nullptr;
};

/// The only source name of each parameter. Throws data_error for joined tensors.
[[gnu::cold]] inline row_list<kept_text> single_names(row_list<tensors_there> const& sources) {
  row_list<kept_text> all;
  for (auto const& [names, transposed] : sources) {
    if (names.size() > 1)
      refuse_map({quotation(names[0]), " and ", quotation(names[1]),
                  ": only weights that are loaded from a file are joined"});
    all.push_back(names[0]);
  }
  return all;
}

/// The source names of all names where nothing is joined or transposed. Throws data_error for an
/// entry that joins or transposes, too.
[[gnu::cold]] inline row_list<kept_text> names_there(row_list<kept_text> const& here,
                                                     name_map const& map) {
  auto const sources = sources_there(here, map);
  for (auto const& [names, transposed] : sources)
    if (transposed) refuse_map({quotation(names[0]), ": only weights in files are transposed"});
  return single_names(sources);
}

}  // namespace pp::detail
