// SPDX-License-Identifier: BSL-1.0
//
// Pipeline schedules side by side, with no model and no device: which is fastest on p ranks and m
// micro-batches with these times, which fits the memory, and how far each is from what is possible.
//
//     examples/run.sh schedules --ranks 8 --micro-batches 32 --forward 18513
//         --backward 18086 --weight 9331 --hop 626 --limit 2
#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/report/escape.hpp>
#include <pipe/report/write_file.hpp>
#include <pipe/weights/distinct_files.hpp>

#include "compare.hpp"

namespace {

/// A whole number in digits that fits into T; CLI11 reads one that is too large as the largest
/// there is.
template <class T>
std::string why_no_number(std::string const& text) {
  T value = 0;
  auto const [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (fault == std::errc::invalid_argument || end != text.data() + text.size())
    return "'" + text + "' is no whole number";
  return fault == std::errc{} ? "" : text + (text[0] == '-' ? " is too small" : " is too large");
}

/// throws: pp::file_error if the file cannot be read
std::string text_of(std::string const& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw pp::file_error("cannot read '" + path + "': " + std::strerror(errno));
  return {std::istreambuf_iterator<char>(file), {}};
}

/// throws: pp::file_error if not all that was printed could be written
void flush_output() {
  if (std::cout.flush()) return;
  std::string const reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  throw pp::file_error("cannot write all of the output" + reason);
}

int run(int argc, char** argv) {
  CLI::App app{"Computes, proves and compares pipeline schedules."};
  schedules::request r;
  std::string read, out;
  std::vector<std::string> problems;
  CLI::Option* const problem =
      app.add_option("--problem", problems,
                     "problems as JSON, which pp::explain_problem writes: files, by commas")
          ->delimiter(',')
          ->check(CLI::ExistingFile);
  app.add_option("--ranks", r.asked_ranks,
                 "ranks of the pipeline [4, or the file's]; or several numbers, by commas")
      ->delimiter(',')
      ->check(why_no_number<int>)
      ->excludes(problem);
  app.add_option("--micro-batches", r.asked_micro_batches,
                 "micro-batches of a step [8, or the file's]; or several numbers, by commas")
      ->delimiter(',')
      ->check(why_no_number<int>);
  auto const numbers = [&](char const* name, std::vector<long>& values, char const* what) {
    return app.add_option(name, values, what)->delimiter(',')->check(why_no_number<long>);
  };
  numbers("--forward", r.forward,
          "time of F per rank and micro-batch, an integer; or one per rank, by commas")
      ->excludes(problem);
  numbers("--backward", r.backward, "time of B, the gradient of the input")->excludes(problem);
  numbers("--weight", r.weight, "time of W, the gradient of the weights")->excludes(problem);
  numbers("--hop", r.hop,
          "time from one rank to another; or one for each link, by commas, the first rank's first");
  numbers("--bandwidth", r.bandwidth,
          "bytes per unit of time, in addition; 0 for any number; or one for each link");
  numbers("--bytes", r.bytes, "bytes of the value that a rank sends on; or one per rank");
  app.add_option("--chunks", r.chunks, "chunks per rank, for families that have several")
      ->capture_default_str()
      ->check(why_no_number<int>)
      ->excludes(problem);
  app.add_option("--steps", r.steps, "steps, one after the other without a barrier between them")
      ->capture_default_str()
      ->check(why_no_number<int>);
  numbers("--memory", r.memory, "what F, B and W add to a rank's memory")
      ->expected(3)
      ->excludes(problem);
  app.add_option("--limit", r.limit,
                 "most memory of a rank, in multiples of ranks times what F adds; or one per rank")
      ->delimiter(',');
  numbers("--room", r.room, "the same in the unit of --memory, or of the problem's file");
  app.add_option("--schedule", r.names, "names, by commas; or all")->delimiter(',');
  app.add_option(
      "--placement", r.searched_placement,
      "of searched: straight, or vee or loop with --chunks chunks per rank [straight, or "
      "vee if the problem's file has several]");
  app.add_option("--minimise", r.minimised, "what searched makes short: span, makespan or period")
      ->capture_default_str();
  app.add_option("--effort", r.effort, "of searched: twice as long with 2")->capture_default_str();
  app.add_option(
         "--recompute", r.recomputed,
         "nothing, or all of F once more: in-backward, as a part of B, or ahead of it, as R")
      ->capture_default_str()
      ->excludes(problem);
  app.add_option("--lengths", r.lengths,
                 "lengths of samples, LENGTH or LENGTH:SAMPLES by commas: what ranks wait for "
                 "unequal micro-batches, by their composition")
      ->delimiter(',');
  app.add_option("--context", r.context,
                 "the length of padded samples [the longest, or the file's]")
      ->check(why_no_number<int>)
      ->excludes(problem);
  app.add_option("--micro-batch-size", r.samples, "samples of a full micro-batch")
      ->capture_default_str()
      ->check(why_no_number<int>)
      ->excludes(problem);
  app.add_option("--scores", r.scores,
                 "part of the times that grows with the square of a length, at the context")
      ->capture_default_str()
      ->excludes(problem);
  app.add_option("--composition", r.composition,
                 "of the mini-batch that is drawn: as-they-come, by-length, by-tokens or packed")
      ->capture_default_str();
  app.add_option("--mini-batch", r.mini_batch, "the one that is drawn of an epoch")
      ->capture_default_str()
      ->check(why_no_number<int>);
  app.add_option(
         "--format", r.format,
         "table, csv, text, svg, html, trace, torch, torch-comms: with the transfers, or policy: a "
         "schedule to paste into a program")
      ->capture_default_str();
  app.add_option("--read", read,
                 "a schedule in PyTorch's form, judged like the others; alone without --schedule")
      ->check(CLI::ExistingFile);
  app.add_option("--out", out, "file to write to; else the terminal");
  try {
    app.parse(argc, argv);
  } catch (CLI::Success const& help) {
    errno = 0;
    int const code = app.exit(help);
    flush_output();
    return code;
  }

  std::vector<pp::files::file_use> uses{{"--read", read, pp::files::file_use::way::read},
                                        {"--out", out, pp::files::file_use::way::written}};
  for (std::string const& path : problems)
    uses.push_back({"--problem", path, pp::files::file_use::way::read});
  pp::files::require_distinct(uses);
  if (!read.empty()) r.read = {read, text_of(read)};
  for (std::string const& path : problems) r.problem_files.push_back({path, text_of(path)});
  r.colours = out.empty() && pp::console::wants_colour(stdout);
  schedules::reply const found = schedules::answer(r);
  if (!out.empty()) pp::files::write_file(out, found.text);
  errno = 0;
  if (out.empty()) std::cout << found.text;
  flush_output();
  if (!found.complaint.empty()) throw pp::data_error(found.complaint);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (std::exception const& e) {
    std::cerr << "schedules: " << pp::console::terminal_escaped(e.what()) << "\n";
    return 1;
  }
}
