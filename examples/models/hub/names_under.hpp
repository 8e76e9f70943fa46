// SPDX-License-Identifier: BSL-1.0
//
// A look at the names in files, by which a map is chosen.
#pragma once

#include <algorithm>
#include <string>

#include <pipe/weights/weight_files.hpp>

namespace models::hub {

/// Whether the files have a tensor whose name begins so.
inline bool has_names_under(std::string const& prefix, pp::weight_files const& files) {
  return std::ranges::any_of(files.tensors(),
                             [&](auto const& t) { return t.name.starts_with(prefix); });
}

}  // namespace models::hub
