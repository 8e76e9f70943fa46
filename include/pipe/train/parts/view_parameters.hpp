// SPDX-License-Identifier: BSL-1.0
//
// Construction of parameter views from a trainer's memory.
#pragma once

#include <cstddef>
#include <vector>

#include <pipe/graph/model_tables.hpp>
#include <pipe/graph/position_tables.hpp>
#include <pipe/train/parts/parameter_memory.hpp>
#include <pipe/weights/extents.hpp>
#include <pipe/weights/names.hpp>
#include <pipe/weights/parameter_view.hpp>

namespace pp::detail {

/// Shape of a parameter in weight files: a vector has one extent, a transposed matrix is [columns,
/// rows]. A transposed tensor of more extents is the weight of a convolution, in memory [window,
/// channels, filters], in files [filters, channels, window].
[[gnu::cold]] inline extents file_shape(parameter const& p, bool transposed) {
  if (p.kind == custom::tensor_kind::vector && p.form.rank <= 2) return {p.elements()};
  int const* const extent = p.form.extent;
  int const window = transposed ? p.form.rank - 2 : p.form.rank;  // the number of its extents
  extents shape;
  if (transposed) shape.push_back(extent[window + 1]), shape.push_back(extent[window]);
  for (int i = 0; i < window; ++i) shape.push_back(extent[i]);
  return shape;
}

/// A view of parameter `index` of model M.
template <class M, class T>
parameter_view<T> view_of_parameter(int index, std::span<T> values,
                                    std::span<T const> gradients = {}) {
  parameter const& of = model_tables<M>::parameters[index];
  parameter_name const& file = parameter_names<M>()[std::size_t(index)];
  extents const shape = file_shape(of, file.transposed);
  return {index,           of.unit,   file.name,    {shape.begin(), shape.end()},
          file.transposed, of.rows(), of.columns(), values,
          gradients};
}

/// The parameters whose values are viewed.
enum class viewed : unsigned char {
  all,       ///< parameters that replicas divide are copied: see value_mirror
  undivided  ///< parameters that replicas divide have empty spans
};

/// Views of all parameters of model M except constant tables. `region`: the flat region to view
/// (values or averages); a parameter that is not trained is viewed where it is. The spans of a
/// parameter of another process are empty, and so is the span of a gradient of which replicas have
/// parts.
template <class M, class T, class Engine>
std::vector<parameter_view<T>> view_parameters(
    parameter_memory<Engine> const& parameters,
    long chunk_description::* region = &chunk_description::values,
    [[maybe_unused]] viewed which = viewed::all) {
  std::vector<parameter_view<T>> all;
  parameters.for_each_anywhere(
      [&](char* memory, chunk_description const& chunk, parameter_place const& p) {
        parameter const& of = model_tables<M>::parameters[p.index];
        if (is_table(of.initial.kind)) return;
        int const c = int(&chunk - parameters.chunks);
        char* values = nullptr;
        if (memory != nullptr && !parameters.has_parts(c, p))
          values = memory + (p.trained ? chunk.*region + p.offset : chunk.values_of(p));
        if constexpr (divides_values<Engine>)
          if (memory != nullptr && parameters.has_parts(c, p) && which == viewed::all)
            values = parameters.engine->mirror(c) + p.offset;
        bool const has_gradient =
            memory != nullptr && p.trained && !(divides_gradients<Engine> && is_divided(chunk, p));
        auto const span_at = [&](char* at) {
          return std::span(reinterpret_cast<T*>(at), at != nullptr ? std::size_t(p.elements()) : 0);
        };
        all.push_back(view_of_parameter<M, T>(
            p.index, span_at(values),
            span_at(has_gradient ? memory + chunk.gradients + p.offset : nullptr)));
      });
  return all;
}

}  // namespace pp::detail
