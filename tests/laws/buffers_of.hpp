// SPDX-License-Identifier: BSL-1.0
//
// The numbers that follow the data: running statistics, and buffers of user-defined layers.
#pragma once

#include <vector>

namespace laws {

/// The numbers in all buffers of a trainer, one after the other.
template <class Trainer>
auto buffers_of(Trainer& t) {
  std::vector<typename Trainer::element> all;
  for (auto const& p : t.parameters())
    if (Trainer::model::graph.parameters[p.index].is_buffer)
      all.insert(all.end(), p.values.begin(), p.values.end());
  return all;
}

}  // namespace laws
