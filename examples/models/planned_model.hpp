// SPDX-License-Identifier: BSL-1.0
//
// A model of the list, planned when it is asked for.
#pragma once

#include <cstdio>
#include <string>
#include <utility>

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/amounts.hpp>

#include "hub/compare.hpp"
#include "list.hpp"

/// Adds M to the list under a name.
template <class M>
struct listed {
  /// names: those in files of a hub
  explicit listed(std::string name, pp::name_map (*names)() = [] { return pp::name_map{}; }) {
    add(std::move(name), [names](pp::weight_files const&) { return names(); });
  }
  /// names: those of the hub, or of the age, that the files are of
  listed(std::string name, pp::name_map (*names)(pp::weight_files const&)) {
    add(std::move(name), names);
  }

 private:
  template <class Names>
  static void add(std::string name, Names names) {
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
      return std::vector<std::string>{name, pp::console::readable_count(p.parameters), words[0],
                                      words[1], pp::console::readable_bytes(most)};
    };
    auto const compare = [names](std::string const& path) {
      pp::weight_files const files(path);
      return models::hub::compare<M>(files, names(files));
    };
    all_models().push_back({std::move(name), row, [] { return pp::explain<plan>(); }, compare});
  }
};
