// SPDX-License-Identifier: BSL-1.0
//
// Weights with the names of a hub's library. Its models are divided into other tensors than those
// here: queries, keys and values may be three matrices there and one here, and matrices may be
// stored the other way round. A hub_map says how, and is a table.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/train/named_parameter.hpp>
#include <pipe/train/weights.hpp>

#include "files.hpp"

namespace models {

/// A part of a block, by the beginning of its parameters' names. Several there: their outputs
/// follow each other in the parameter here.
///
///     {"0.1.in_proj_", {"self_attn.q_proj.", "self_attn.k_proj.", "self_attn.v_proj."}}
struct hub_part {
  std::string here;
  std::vector<std::string> there;
};

/// The names of a family of models in the files of a hub.
struct hub_map {
  std::string prefix;           ///< of all names there, in some files
  std::string blocks;           ///< of what is repeated: "h." for h.0., h.1. ...
  std::vector<hub_part> parts;  ///< of a block; other names are the same here and there
  /// Matrices are [inputs, outputs] in the files, not [outputs, inputs].
  bool inputs_first = false;
  /// The ends of the names of tensors that are no parameters: masks, or a second copy of one.
  std::vector<std::string> others;
};

/// The names there of the parameter with a name here.
inline std::vector<std::string> names_there(hub_map const& map, std::string const& here) {
  if (!here.starts_with(map.blocks)) return {here};
  std::size_t const dot = here.find('.', map.blocks.size());
  if (dot == here.npos) return {here};
  std::string const block = here.substr(0, dot + 1), rest = here.substr(dot + 1);
  for (hub_part const& part : map.parts)
    if (rest.starts_with(part.here)) {
      std::vector<std::string> all;
      for (std::string const& there : part.there)
        all.push_back(block + there + rest.substr(part.here.size()));
      return all;
    }
  return {here};
}

namespace detail {

/// Outputs [first, first + count) of a parameter, and the tensor that has them.
struct piece {
  hub_tensor tensor;
  int first = 0, count = 0;
};

/// Whether a tensor has the outputs in front of the inputs.
template <class View>
bool has_outputs_first(View const& view, hub_map const& map) {
  return view.stored_transposed && !map.inputs_first;
}

/// The shape in files of `count` outputs of a parameter.
template <class View>
std::vector<long> shape_there(View const& view, hub_map const& map, long count) {
  if (view.file_shape.size() == 1) return {count};
  return has_outputs_first(view, map) ? std::vector<long>{count, view.rows}
                                      : std::vector<long>{view.rows, count};
}

/// Copies a tensor to its outputs, tile by tile, so that both stay in the cache.
template <class View>
void copy_in(View const& view, hub_map const& map, piece const& p, std::vector<float> const& from) {
  constexpr int tile = 32;
  bool const turned = has_outputs_first(view, map);
  std::size_t const columns = std::size_t(view.columns), rows = std::size_t(view.rows);
  for (int r0 = 0; r0 < view.rows; r0 += tile)
    for (int c0 = 0; c0 < p.count; c0 += tile)
      for (int r = r0; r < std::min(r0 + tile, view.rows); ++r)
        for (int c = c0; c < std::min(c0 + tile, p.count); ++c)
          view.values[std::size_t(r) * columns + std::size_t(p.first + c)] =
              from[turned ? std::size_t(c) * rows + std::size_t(r)
                          : std::size_t(r) * std::size_t(p.count) + std::size_t(c)];
}

}  // namespace detail

/// Loads weights tensor by tensor, converting them to float: in memory there is never more than the
/// model and a tensor. `weights`: a trainer, or model_weights.
///
/// law:    nothing is written unless all names and shapes fit
/// throws: pp::data_error with the first mismatches: tensors that are missing, of another shape or
///         no real type, or that are no parameters; pp::file_error if one cannot be read, and then
///         some parameters may have changed
template <class Weights>
void load_hub_weights(Weights& weights, hub_files const& files, hub_map const& map) {
  std::vector<std::string> problems;
  std::vector<std::string_view> used;
  auto const views = weights.parameters();
  std::vector<std::vector<detail::piece>> pieces;
  for (auto const& view : views) {
    auto const names = names_there(map, view.name);
    auto& all = pieces.emplace_back();
    long first = 0;
    for (std::string const& name : names) {
      auto const at = files.tensors().find(name);
      if (at == files.tensors().end()) {
        problems.push_back("'" + name + "' is missing");
        continue;
      }
      used.push_back(at->first);
      auto const& place = *at->second.place;
      bool const is_last = &name == &names.back();
      // All but the last say themselves how many outputs they have.
      long const count = is_last || place.shape.empty() ? view.columns - first
                         : place.shape.size() == 1 || detail::has_outputs_first(view, map)
                             ? place.shape.front()
                             : place.shape.back();
      auto const expected = detail::shape_there(view, map, count);
      if (place.shape != expected || count < 1)
        problems.push_back("'" + name + "': expected shape " + pp::detail::text_of_shape(expected) +
                           ", found " + pp::detail::text_of_shape(place.shape));
      else if (!pp::is_real(place.type))
        problems.push_back("'" + name + "': expected F64, F32, F16 or BF16, found " +
                           pp::detail::text_of_type(place));
      all.push_back({at->second, int(first), int(count)});
      first += count;
    }
  }
  std::sort(used.begin(), used.end());
  for (auto const& [name, tensor] : files.tensors())
    if (!std::binary_search(used.begin(), used.end(), name) &&
        std::none_of(map.others.begin(), map.others.end(),
                     [&of = name](std::string const& end) { return of.ends_with(end); }))
      problems.push_back("'" + name + "' is no parameter of the model");
  pp::detail::require_fit({"in '" + files.path() + "'", ""}, problems);

  std::vector<std::byte> bytes;
  std::vector<float> numbers;
  for (std::size_t i = 0; i < views.size(); ++i)
    for (detail::piece const& p : pieces[i]) {
      auto const& place = *p.tensor.place;
      bytes.resize(std::size_t(place.end - place.begin));
      p.tensor.file->read(place.begin, bytes);
      numbers.resize(bytes.size() / std::size_t(pp::size_of(place.type)));
      pp::decode(place.type, bytes.data(), std::span(numbers));
      detail::copy_in(views[i], map, p, numbers);
    }
  weights.parameters_changed();
}

/// Saves weights under the names of a map in which every parameter is one tensor.
///
/// throws: as pp::save_weights
template <class Weights>
void save_hub_weights(Weights& weights, std::string const& path, hub_map const& map) {
  auto all = pp::detail::named_parameters(weights);
  for (auto& p : all) {
    p.name = names_there(map, p.name).front();
    if (!p.transposed || !map.inputs_first) continue;
    p.transposed = false;
    p.shape = {p.rows, p.columns};
  }
  pp::save_weights(all, path);
}

}  // namespace models
