// SPDX-License-Identifier: BSL-1.0
//
// Published architectures as types, whose numbers of parameters the compiler checks.
//
//     examples/run.sh models                 all of them, a line each
//     examples/run.sh models resnet-50       everything about one: layers, memory, launches
//     examples/run.sh models resnet-50 --weights FILE      whether a file of its hub fits it
//
// Plans are made for four stages and eight micro-batches, without a byte for a parameter.
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "list.hpp"

/// Prints what a file has of a model; counts of steps are not told. Returns the exit status.
static int compare(model const& m, std::string const& path) {
  pp::load_report const found = m.compare(path);
  auto const print = [](char const* what, std::vector<std::string> const& names) {
    for (std::string const& name : names)
      if (!pp::detail::is_batch_count(name)) std::printf("%s: %s\n", what, name.c_str());
  };
  print("not in the file", found.missing);
  print("not in the model", found.unused);
  std::printf("%zu of %zu parameters are in the file, in their shapes\n", found.loaded.size(),
              found.loaded.size() + found.missing.size());
  return found.missing.empty() ? 0 : 1;
}

int main(int count, char** arguments) {
  CLI::App app("Published architectures: parameters, work and plans.", "models");
  std::string name, weights;
  std::map<std::string, model const*> known;
  for (model const& m : all_models()) known[m.name] = &m;
  auto* const one = app.add_option("model", name, "one of them, to see its plan");
  one->check(CLI::IsMember(&known));
  app.add_option("--weights", weights, "a safetensors file to compare with the model")->needs(one);
  try {
    app.parse(count, arguments);
    if (!weights.empty()) {
      int const status = compare(*known.at(name), weights);
      return std::fflush(stdout) == 0 ? status : 1;
    }
    if (!name.empty()) {
      std::printf("%s\n", known.at(name)->explain().c_str());
    } else {
      pp::console::text_table table(
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
