// SPDX-License-Identifier: BSL-1.0
//
// Published architectures as types, whose numbers of parameters the compiler checks.
//
//     examples/run.sh models                 all of them, a line each
//     examples/run.sh models resnet-50       everything about one: layers, memory, launches
//
// Plans are made for four stages and eight micro-batches, without a byte for a parameter.
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "list.hpp"

int main(int count, char** arguments) {
  CLI::App app("Published architectures: parameters, work and plans.", "models");
  std::string name;
  std::map<std::string, model const*> known;
  for (model const& m : all_models()) known[m.name] = &m;
  app.add_option("model", name, "one of them, to see its plan")->check(CLI::IsMember(&known));
  try {
    app.parse(count, arguments);
    if (!name.empty()) {
      std::printf("%s\n", known.at(name)->explain().c_str());
    } else {
      pp::text_table table(
          {"model", "parameters", "GFLOP forward, a sample", "stages' imbalance", "largest rank"},
          {0});
      for (model const& m : all_models()) table.add(m.row());
      std::printf("%s", table.str().c_str());
    }
    return std::fflush(stdout) == 0 ? 0 : 1;
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    std::fprintf(stderr, "models: %s (models --help lists the options)\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "models: %s\n", e.what());
    return 1;
  }
}
