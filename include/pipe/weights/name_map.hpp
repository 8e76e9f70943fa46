// SPDX-License-Identifier: BSL-1.0
//
// Mapping of parameter names between a model and the source of its weights: a file, or another
// model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/config.hpp>
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
[[noreturn, gnu::cold]] void refuse_map(text_parts why);

/// Whether a map passes over the tensor with this name in the source.
[[gnu::cold]] bool is_passed_over(std::string_view name, name_map const& map);

/// Throws data_error for two names with the same source name.
[[gnu::cold]] void require_distinct(row_list<tensors_there> const& all,
                                    row_list<kept_text> const& here);

/// The source names of all names: the longest entry that matches replaces a name's beginning; names
/// without a match are unchanged.
///
/// throws: data_error for an entry of a prefix and a whole name, further tensors of a prefix or of
///         a transposed matrix, a `here` where tensors are passed over, an entry that matches no
///         name, two entries for one name or prefix, and two names with the same source name
[[gnu::cold]] row_list<tensors_there> sources_there(row_list<kept_text> const& here,
                                                    name_map const& map);

/// The names of parameters in a source: their own, or those of a map, which programs without a map
/// do not compile. Outlived by the map.
class source_names {
 public:
  /// Their own names.
  source_names() = default;
  [[gnu::cold]] explicit source_names(name_map const& map);
  /// throws: as sources_there
  row_list<tensors_there> of(row_list<kept_text> const& here) const { return there_(here, map_); }
  bool passes_over(std::string_view name) const {
    return map_ != nullptr && passes_over_(name, *map_);
  }

 private:
  [[gnu::cold]] static row_list<tensors_there> unmapped(row_list<kept_text> const& here,
                                                        name_map const*);
  [[gnu::cold]] static row_list<tensors_there> mapped(row_list<kept_text> const& here,
                                                      name_map const* map);

  name_map const* map_ = nullptr;
  row_list<tensors_there> (*there_)(row_list<kept_text> const&, name_map const*) = &unmapped;
  bool (*passes_over_)(std::string_view, name_map const&) = nullptr;
};

/// The only source name of each parameter. Throws data_error for joined tensors.
[[gnu::cold]] row_list<kept_text> single_names(row_list<tensors_there> const& sources);

/// The source names of all names where nothing is joined or transposed. Throws data_error for an
/// entry that joins or transposes, too.
[[gnu::cold]] row_list<kept_text> names_there(row_list<kept_text> const& here, name_map const& map);

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/weights/name_map.inl>
#endif
