// SPDX-License-Identifier: BSL-1.0
//
// What does it cost that gradients are of older weights? A small GPT learns the same text under
// 1F1B, PipeDream, PipeDream-2BW and PACI, with several optimizers, learning rates and seeds, and a
// page shows what came out.
//
//     staleness                                     a few minutes; writes staleness.html and .csv
//     staleness --steps 30 --seeds 1                a quick look
//     staleness --tokens 1000000 --rates .25,.5,1,2,4 --optimizers muon --out muon.html
//
// Ctrl-C ends it with a page of the runs that have ended. Exit codes: 0 done; 1 an error; 2 wrong
// options; 130, 143 stopped by SIGINT, SIGTERM.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/report/amounts.hpp>
#include <pipe/report/progress_line.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/report/write_file.hpp>
#include <pipe/train/stop_request.hpp>
#include <pipe/weights/distinct_files.hpp>

#include "../gpt/standard_library.hpp"
#include "../options.hpp"
#include "../outputs.hpp"
#include "page.hpp"

namespace {

struct options {
  long steps = 400, tokens = 0, seeds = 3;
  std::vector<double> rates{0.5, 1, 2};
  std::vector<std::string> schedules, optimizers;  // empty: all
  std::string out = "staleness.html", text, command;
};

/// The file for the table of runs: the page's, with another extension.
std::string csv_path(options const& o) {
  return std::filesystem::path(o.out).replace_extension(".csv").string();
}

std::vector<std::string> names_of(std::string arm::* what) {
  std::vector<std::string> names;
  for (arm const& a : arms())
    if (std::find(names.begin(), names.end(), a.*what) == names.end()) names.push_back(a.*what);
  return names;
}

/// The trainers that are asked for, those of an optimizer together.
std::vector<std::size_t> chosen(options const& o) {
  auto const takes = [](std::vector<std::string> const& asked, std::string const& name) {
    return asked.empty() || std::find(asked.begin(), asked.end(), name) != asked.end();
  };
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < arms().size(); ++i)
    if (takes(o.schedules, arms()[i].schedule) && takes(o.optimizers, arms()[i].optimizer))
      which.push_back(i);
  return which;
}

/// Seed after seed, so that a run that is stopped has something of every trainer and rate.
std::vector<ended_run> runs_of(options const& o, experiment const& e,
                               std::vector<std::size_t> const& which,
                               pp::stop_request const& stop) {
  std::vector<ended_run> runs;
  std::string now;
  long const all = long(which.size() * o.rates.size()) * o.seeds;
  pp::progress_line line(all * e.steps, [&](pp::step_metrics const& m) {
    char words[160];
    std::snprintf(words, sizeof words, "run %zu/%ld  %s  loss %.3f", runs.size() + 1, all,
                  now.c_str(), m.loss);
    return std::string(words);
  });
  for (std::uint64_t seed = 1; seed <= std::uint64_t(o.seeds); ++seed)
    for (double const factor : o.rates)
      for (std::size_t const a : which) {
        arm const& trainer = arms()[a];
        now = trainer.schedule + " " + trainer.optimizer + "  rate " +
              short_number(factor * trainer.learning_rate) + "  seed " + std::to_string(seed);
        long const before = long(runs.size()) * e.steps;
        outcome r = trainer.train(e, factor, seed, [&](long step, double loss) {
          line.write({.step = before + step, .loss = loss});
          return !stop;
        });
        if (!r.diverged && r.steps < e.steps) return line.end(), runs;
        runs.push_back({a, factor, seed, std::move(r)});
        if (stop) return line.end(), runs;
      }
  line.end();
  return runs;
}

int run(options const& o) {
  auto const source = o.text.empty() ? standard_library_headers() : std::filesystem::path(o.text);
  pp::text_data const text(source, context);
  experiment const e{text, o.steps};
  std::vector<std::size_t> const which = chosen(o);
  require_writable({o.out, csv_path(o)});
  page_words words{.text = (o.text.empty() ? "the C++ standard library's headers" : o.text) + ", " +
                           pp::console::readable_bytes(text.bytes()),
                   .command = o.command,
                   .steps = o.steps,
                   .runs = 0,
                   .planned = long(which.size() * o.rates.size()) * o.seeds,
                   .seeds = o.seeds};
  std::printf("text: %s; %ld runs of %s tokens\n", words.text.c_str(), words.planned,
              pp::console::readable_count(o.steps * tokens_per_step).c_str());
  pp::stop_request stop;
  std::vector<ended_run> const runs = runs_of(o, e, which, stop);
  words.runs = long(runs.size());
  auto const all = summaries_of(which, o.rates, runs);
  pp::files::write_file(csv_path(o), csv_of(runs));
  pp::files::write_file(o.out, page_of(words, all));
  pp::console::text_table table({"optimizer", "schedule", "best rate", "loss", "to 1f1b", ""},
                                {0, 1, 5});
  for (summary const& s : all) {
    cell const* const best = s.best < 0 ? nullptr : &s.cells[std::size_t(s.best)];
    table.add({s.of->optimizer, s.of->schedule,
               best == nullptr ? "-" : short_number(best->factor * s.of->learning_rate),
               best == nullptr ? "-" : words_of(*best), words_of_difference(s), s.verdict});
  }
  std::printf("\n%s\nwrote %s and %s\n", table.str().c_str(), o.out.c_str(), csv_path(o).c_str());
  if (words.runs < words.planned)
    std::fprintf(stderr, "staleness: stopped by %s after %ld of %ld runs\n", stop.name(),
                 words.runs, words.planned);
  return std::fflush(stdout) == 0 ? stop.exit_code() : 1;
}

}  // namespace

int main(int count, char** arguments) {
  options o;
  o.command = "examples/run.sh staleness";
  for (int i = 1; i < count; ++i) o.command += std::string(" ") + arguments[i];
  CLI::App app("Trains a small GPT with weights of different ages and shows what it costs.",
               "staleness");
  auto* const steps = app.add_option("--steps", o.steps, "updates of a run, of 512 tokens each")
                          ->check(CLI::Range(1L, 1L << 40))
                          ->capture_default_str();
  app.add_option("--tokens", o.tokens, "of a run, instead of steps; rounded up to whole updates")
      ->check(CLI::Range(1L, 1L << 40))
      ->excludes(steps);
  app.add_option("--seeds", o.seeds, "runs of each kind, with the seeds 1, 2, ...")
      ->check(CLI::Range(1L, 1000L))
      ->capture_default_str();
  app.add_option("--rates", o.rates, "factors of each optimizer's learning rate, by commas")
      ->delimiter(',')
      ->check(above_0)
      ->capture_default_str();
  app.add_option("--schedules", o.schedules, "by commas; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember(names_of(&arm::schedule)));
  app.add_option("--optimizers", o.optimizers, "by commas; default: all")
      ->delimiter(',')
      ->check(CLI::IsMember(names_of(&arm::optimizer)));
  app.add_option("--out", o.out, "the page; a .csv of all runs is beside it")
      ->capture_default_str();
  app.add_option("--text", o.text,
                 "a file or a directory (default: the C++ standard library's headers)");
  try {
    app.parse(count, arguments);
    if (o.tokens > 0) o.steps = (o.tokens + tokens_per_step - 1) / tokens_per_step;
    std::sort(o.rates.begin(), o.rates.end());
    o.rates.erase(std::unique(o.rates.begin(), o.rates.end()), o.rates.end());
    using way = pp::files::file_use::way;
    pp::files::require_distinct({{"--text", o.text, way::read},
                                 {"--out", o.out, way::written},
                                 {"the .csv beside --out", csv_path(o), way::written}});
    return run(o);
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    std::fprintf(stderr, "staleness: %s (staleness --help lists the options)\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "staleness: %s\n", pp::console::terminal_escaped(e.what()).c_str());
    return 1;
  }
}
