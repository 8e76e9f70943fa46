// SPDX-License-Identifier: BSL-1.0
//
// Comparison of a weight file with a model, of which only the file's header is read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <pipe/train/parts/view_parameters.hpp>
#include <pipe/weights/names.hpp>
#include <pipe/weights/weights.hpp>

namespace models::hub {

/// What loading the files into a trainer of M would load, without memory for a parameter. What is
/// missing is called as it is there.
///
/// throws: data_error for tensors of other shapes
template <class M>
pp::load_report compare(pp::weight_files const& files, pp::name_map const& names) {
  std::vector<pp::detail::named_parameter<float>> parameters;
  pp::detail::row_list<pp::detail::kept_text> here;
  for (int i = 0; i < M::graph.size.parameters; ++i) {
    auto const& p = M::graph.parameters[i];
    auto const& [name, transposed] = pp::detail::parameter_names<M>()[std::size_t(i)];
    if (p.tied_to >= 0 || pp::detail::is_table(p.initial.kind)) continue;
    here.push_back(name);
    parameters.push_back(
        {name, pp::detail::file_shape(p, transposed), transposed, p.rows(), p.columns(), {}, true});
  }
  pp::load_report found = pp::load_weights(parameters, files, pp::load_policy::partial, names);
  found.missing.clear();
  for (auto const& [there, transposed] : pp::detail::sources_there(here, names))
    if (auto const at =
            std::ranges::find_if_not(there, [&](std::string_view name) { return files.has(name); });
        at != there.end())
      found.missing.emplace_back(*at);
  return found;
}

}  // namespace models::hub
