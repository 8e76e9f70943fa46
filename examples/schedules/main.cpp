// SPDX-License-Identifier: BSL-1.0
//
// Pipeline schedules side by side, with no model and no device: which is fastest on p ranks and m micro-batches with these times, which
// fits the memory, and how far each is from what is possible.
//
//     examples/run.sh schedules --ranks 8 --micro-batches 32 --forward 18513 --backward 18086 --weight 9331 --hop 626 --limit 2
#include <CLI/CLI.hpp>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <pipe/report/write_file.hpp>

#include "compare.hpp"

namespace {

int run(int argc, char** argv) {
  CLI::App app{"Computes, proves and compares pipeline schedules."};
  schedules::request r;
  std::string read, out;
  app.add_option("--ranks", r.ranks, "ranks of the pipeline")->capture_default_str();
  app.add_option("--micro-batches", r.micro_batches, "micro-batches of a step")->capture_default_str();
  app.add_option("--forward", r.forward, "time of F per rank and micro-batch, an integer; or one per rank, by commas")
      ->delimiter(',');
  app.add_option("--backward", r.backward, "time of B, the gradient of the input")->delimiter(',');
  app.add_option("--weight", r.weight, "time of W, the gradient of the weights")->delimiter(',');
  app.add_option("--hop", r.hop, "time from one rank to another")->capture_default_str();
  app.add_option("--chunks", r.chunks, "chunks per rank, for families that have several")->capture_default_str();
  app.add_option("--memory", r.memory, "what F, B and W add to a rank's memory")->delimiter(',')->expected(3);
  app.add_option("--limit", r.limit, "most memory of a rank, in multiples of ranks times what F adds");
  app.add_option("--schedule", r.names, "names, by commas; or all")->delimiter(',');
  app.add_option("--format", r.format, "table, csv, text, svg, html, trace or torch")->capture_default_str();
  app.add_option("--read", read, "a schedule in PyTorch's form, judged like the others")->check(CLI::ExistingFile);
  app.add_option("--out", out, "file to write to; else the terminal");
  CLI11_PARSE(app, argc, argv);

  if (!read.empty()) {
    std::ifstream file(read);
    r.read_name = read;
    r.read_text.assign(std::istreambuf_iterator<char>(file), {});
  }
  r.colours = out.empty() && pp::wants_colour(stdout);
  std::string const text = schedules::answer(r);
  if (out.empty()) {
    std::cout << text;
  } else {
    pp::write_file(out, text);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (std::exception const& e) {
    std::cerr << "schedules: " << e.what() << "\n";
    return 1;
  }
}
