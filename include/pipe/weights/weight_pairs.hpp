// SPDX-License-Identifier: BSL-1.0
//
// Matching of a model's parameters and the tensors of a source, by name: a file, or another model.
// All mismatches are found before the first parameter changes.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/joined_text.hpp>
#include <pipe/io/kept_text.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/io/sorted.hpp>
#include <pipe/weights/extents.hpp>
#include <pipe/weights/misfit.hpp>
#include <pipe/weights/name_map.hpp>
#include <pipe/weights/named_parameter.hpp>

namespace pp {

/// Treatment of names that only one side has.
enum class load_policy : unsigned char {
  strict,  ///< the file has every parameter, and nothing else but batch norms' step counts
  partial  ///< the common names are loaded, at least one
};

/// Result of loading, by name: `loaded` and `missing` parameters in model order, and tensors that
/// were `unused`, in file order, without tensors that a map passes over. Where weights are copied
/// from a model, its parameters are the tensors.
struct load_report {
  std::vector<std::string> loaded, missing, unused;
};

}  // namespace pp

namespace pp::detail {

/// Whether a tensor is PyTorch's count of the steps of a batch norm, which nothing here reads.
[[gnu::cold]] bool is_batch_count(std::string_view name);

/// The source of weights, in the words of messages: "in 'a.safetensors'" and "the file", and words
/// for what is loaded into what.
struct weights_source {
  std::string where;
  char const* what;
  char const *content = "weights", *item = "parameter", *target = "model";
};

/// Throws data_error if there are problems.
[[gnu::cold]] void require_fit(weights_source const& from, row_list<kept_text> const& problems);

/// A parameter and the tensors of which it is made, by index: one tensor, or several that follow
/// each other.
struct weight_sources {
  static constexpr bool moves_by_bytes = true;

  std::size_t parameter = 0;
  row_list<std::size_t> tensors;
  bool transposed = false;  ///< the source stores the matrix transposed
};
/// A parameter with the layout that a map gives it in files. Vectors are not transposed.
template <class T>
[[gnu::cold]] named_parameter<T> as_there(named_parameter<T> p, bool transposed) {
  if (transposed && p.shape.size() == 2) {
    p.shape = {p.shape[1], p.shape[0]};
    p.transposed = !p.transposed;
  }
  return p;
}
/// Parameters with the names and layouts of a map, to be saved.
///
/// throws: data_error as sources_there, and for joined tensors
template <class T>
[[gnu::cold]] row_list<named_parameter<T>> all_there(row_list<named_parameter<T>> parameters,
                                                     name_map const& map) {
  row_list<kept_text> here;
  for (named_parameter<T> const& p : parameters) here.push_back(p.name);
  auto const sources = sources_there(here, map);
  auto const names = single_names(sources);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] = as_there(std::move(parameters[i]), sources[i].transposed);
    parameters[i].name = names[i];
  }
  return parameters;
}
/// The matched parameters and tensors, and the report.
struct weight_pairs {
  row_list<weight_sources> pairs;
  load_report report;
};

/// Names of tensors for a message: "tensor 'a'", "tensors 'a', 'b'".
[[gnu::cold]] std::string text_of_tensors(row_list<kept_text> const& names);

/// The first source name of each parameter.
[[gnu::cold]] row_list<kept_text> first_names(row_list<tensors_there> const& all);

/// Adds a name to a list of the report.
[[gnu::cold]] void add_name(std::vector<std::string>& to, std::string_view name);

/// Matches parameters and tensors by name. misfit(weight_sources, parameter with the source's
/// layout) says why the two do not match, or is empty.
///
/// throws: data_error with all mismatches, see load_weights
template <class T, class Tensors, class Misfit>
[[gnu::cold]] weight_pairs pair_weights(std::span<named_parameter<T> const> parameters,
                                        Tensors const& tensors, load_policy policy,
                                        source_names const& map, weights_source const& from,
                                        Misfit misfit) {
  name_index by_name;
  for (auto const& t : tensors) by_name.add(t.name);
  by_name.sort();
  row_list<kept_text> names;
  for (named_parameter<T> const& p : parameters) {
    require_law(p);
    names.push_back(p.name);
  }
  row_list<tensors_there> const there = map.of(names);
  weight_pairs found;
  row_list<kept_text> problems;
  row_list<bool> is_used(tensors.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    weight_sources pair{i, {}, there[i].transposed};
    std::string missing;
    for (kept_text const& name : there[i].names)
      if (long const at = by_name.find(name); at >= 0)
        pair.tensors.push_back(std::size_t(at));
      else if (missing.empty())
        missing = name == names[i]
                      ? joined_text({quotation(name)})
                      : joined_text({quotation(names[i]), " (", quotation(name), " there)"});
    if (!missing.empty()) {
      add_name(found.report.missing, names[i]);
      if (policy == load_policy::strict)
        problems.push_back(joined_text({from.item, " ", missing, ": not in ", from.what}));
      continue;
    }
    for (std::size_t const tensor : pair.tensors) is_used[tensor] = true;
    if (std::string const why = misfit(pair, as_there(parameters[i], pair.transposed));
        !why.empty())
      problems.push_back(joined_text({text_of_tensors(there[i].names), ": ", why}));
    found.pairs.push_back(std::move(pair));
    add_name(found.report.loaded, names[i]);
  }
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (!is_used[i] && !map.passes_over(tensors[i].name)) {
      add_name(found.report.unused, tensors[i].name);
      if (policy == load_policy::strict && !is_batch_count(tensors[i].name))
        problems.push_back(
            joined_text({"tensor ", quotation(tensors[i].name), ": not in the ", from.target}));
    }
  if (policy == load_policy::partial && found.pairs.empty() && !parameters.empty())
    problems.push_back(
        joined_text({"no name in common: ", from.what, " has ", text_of_names(found.report.unused),
                     "; the ", from.target, " wants ", text_of_names(first_names(there))}));
  require_fit(from, problems);
  return found;
}

/// The shape of tensors joined along their first extent; empty if other extents differ.
template <class Tensors>
[[gnu::cold]] extents joined_shape(Tensors const& tensors, row_list<std::size_t> const& which) {
  extents shape = tensors[which[0]].shape;
  for (std::size_t i = 1; i < which.size(); ++i) {
    std::span<long const> const next = tensors[which[i]].shape, first = shape;
    if (first.empty() || next.empty() || !equal_extents(first.subspan(1), next.subspan(1)))
      return {};
    shape[0] += next[0];
  }
  return shape;
}

/// The shapes of tensors as text: "[2, 4], [2, 4]".
template <class Tensors>
[[gnu::cold]] std::string text_of_shapes(Tensors const& tensors,
                                         row_list<std::size_t> const& which) {
  std::string text;
  for (std::size_t const t : which)
    append_text(text, {text.empty() ? "" : ", ", text_of_shape(tensors[t].shape)});
  return text;
}

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/weights/weight_pairs.inl>
#endif
