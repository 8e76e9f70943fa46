// SPDX-License-Identifier: BSL-1.0
//
// The exact optima of optima.txt, which another program has found.
#pragma once

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <pipe/schedule/floors.hpp>

#include "reference.hpp"

namespace reference {

using pp::schedules::chunk_cost;
using pp::schedules::flush_floor;
using pp::schedules::placement;

/// A line of optima.txt: a problem, and the shortest span and makespan of all its schedules.
struct solved {
  many_costs problem;
  placement where = placement::straight;
  flush_floor best;
};

inline std::vector<solved> read_optima() {
  std::vector<solved> all;
  std::ifstream file(PIPE_TESTS_FOLDER "/schedule/optima.txt");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    solved s;
    std::string where;
    words >> where >> s.problem.ranks >> s.problem.micro_batches >> s.problem.hop >>
        s.problem.limit >> s.best.stage_local_span >> s.best.makespan;
    s.where = where == "straight" ? placement::straight
              : where == "loop"   ? placement::loop
              : where == "vee"    ? placement::vee
                                  : placement::bidirectional;
    for (chunk_cost c; words >> c.forward >> c.backward_input >> c.backward_weight >>
                       c.memory.forward >> c.memory.backward_input >> c.memory.backward_weight;)
      s.problem.costs.push_back(c);
    s.problem.chunks = int(s.problem.costs.size());
    all.push_back(std::move(s));
  }
  return all;
}

}  // namespace reference
