// SPDX-License-Identifier: BSL-1.0
//
// A model of the list, planned when it is asked for.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <pipe/pipe.hpp>
#include <pipe/report/amounts.hpp>
#include <pipe/train/planned.hpp>

#include "hub/compare.hpp"
#include "list.hpp"

/// Adds M to the list under a name. names: those in files of a hub.
template <class M>
struct listed {
  explicit listed(std::string name, pp::name_map const& names = {}) {
    using plan = pp::Planned<M, pp::Stages<4>, pp::MicroBatches<8>, pp::MicroBatchSize<1>,
                             pp::OneFOneB, pp::AdamW>;
    auto const row = [name] {
      auto const& p = plan::plan();
      long most = 0, flops = 0;
      for (long const bytes : p.rank_bytes) most = bytes > most ? bytes : most;
      for (auto const& stage : p.stages) flops += stage.forward_flops;
      char words[2][32];
      std::snprintf(words[0], sizeof words[0], "%.2f", double(flops) / 1e9);
      std::snprintf(words[1], sizeof words[1], "%.2f", p.imbalance);
      return std::vector<std::string>{name, pp::readable_count(p.parameters), words[0], words[1],
                                      pp::readable_bytes(most)};
    };
    all_models().push_back({std::move(name), row, [] { return pp::explain<plan>(); },
                            [names](std::string const& path) {
                              return models::hub::compare<M>(pp::weight_files(path), names);
                            }});
  }
};
