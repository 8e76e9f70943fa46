// SPDX-License-Identifier: BSL-1.0
//
// Construction of parameter views from a trainer's memory.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/graph/model_tables.hpp>
#include <pipe/graph/position_tables.hpp>
#include <pipe/train/names.hpp>
#include <pipe/train/parameter_view.hpp>
#include <pipe/train/parts/parameter_memory.hpp>

namespace pp::detail {

/// Shape of a parameter in weight files: a vector has one extent, a transposed matrix is [columns,
/// rows]. A transposed tensor of more extents is the weight of a convolution, [window, channels,
/// filters]: in files [filters, channels, window].
inline std::vector<long> file_shape(parameter const& p, bool transposed) {
  if (p.kind == tensor_kind::vector && p.form.rank <= 2) return {p.elements()};
  int const* const extent = p.form.extent;
  int const window = transposed ? p.form.rank - 2 : p.form.rank;  // the number of its extents
  std::vector<long> shape;
  if (transposed) shape = {extent[window + 1], extent[window]};
  shape.insert(shape.end(), extent, extent + window);
  return shape;
}

/// Views of all parameters of model M except constant tables. `region`: the flat region to view
/// (values or averages); a parameter that is not trained is viewed where it is, and the spans of
/// one of another process are empty, as is that of a gradient of which replicas have parts.
template <class M, class T, class Engine>
std::vector<parameter_view<T>> view_parameters(parameter_memory<Engine> const& parameters,
                                               long chunk_description::* region) {
  std::vector<parameter_view<T>> all;
  parameters.for_each_anywhere(
      [&](char* memory, chunk_description const& chunk, parameter_place const& p) {
        parameter const& of = model_tables<M>::parameters[p.index];
        if (is_table(of.initial.kind)) return;
        std::size_t const n = memory != nullptr ? std::size_t(p.elements()) : 0;
        auto const at = [&](long offset) {
          return memory != nullptr ? reinterpret_cast<T*>(memory + offset) : nullptr;
        };
        bool const has_gradient = p.trained && p.offset >= chunk.divided_bytes;
        parameter_name const& file = parameter_names<M>()[std::size_t(p.index)];
        all.push_back({p.index,
                       of.unit,
                       file.name,
                       file_shape(of, file.transposed),
                       file.transposed,
                       p.rows,
                       p.columns,
                       {at(p.trained ? chunk.*region + p.offset : chunk.values_of(p)), n},
                       {at(chunk.gradients + p.offset), has_gradient ? n : 0}});
      });
  return all;
}

}  // namespace pp::detail
