// SPDX-License-Identifier: BSL-1.0
//
// A launcher of programs whose processes talk by sockets (the option Tcp): starts them on this
// machine and, after a failure, starts all of them again, so that a program that resumes from its
// checkpoint goes on.
//
//     pipe-run -n 4 --restarts 3 ./train
#include <CLI/CLI.hpp>

#include <poll.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <pipe/checkpoint/failure_rate.hpp>

#include "restart_budget.hpp"
#include "world.hpp"

namespace {

using namespace launcher;

/// What the command line asks for. Times in seconds.
struct request {
  std::vector<int> sizes{1};
  int least = 0;
  int restarts = 0;
  double window = 3600, first_wait = 1;
  double save = 0, chance = 0.0027;  // for the interval between checkpoints
  long machines = 1;
  world_settings world;
};

constexpr int code_of_own_fault = 125, code_of_no_executable = 126, code_of_no_program = 127;

std::string why_no_time(std::string const& text) {
  double value = 0;
  auto const [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool const is_good = wrong == std::errc{} && end == text.data() + text.size();
  return is_good && value >= 0 && value < 1e9 ? "" : "'" + text + "' is no number of seconds";
}

/// "8,4,2" as numbers; none if that is not what it is.
std::vector<int> sizes_of(std::string const& text) {
  std::vector<int> sizes;
  for (char const *at = text.data(), *const last = at + text.size();; ++at) {
    auto const [end, wrong] = std::from_chars(at, last, sizes.emplace_back());
    if (wrong != std::errc{} || sizes.back() < 1 || sizes.back() > 4096) return {};
    if (end == last) return sizes;
    if (*(at = end) != ',') return {};
  }
}

std::string number(double value, int digits = 3) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g", digits, value);
  return text;
}
std::string count(int n, char const* what, char const* more) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : more);
}

/// How often to save, in words.
void print_interval(request const& r) {
  constexpr double day = 86400;
  double const between = pp::time_between_failures(r.chance, day, r.machines),
               chance = pp::chance_of_failure(r.chance, r.machines);
  std::printf(
      "machines: %ld, each fails within a day with a chance of %s %%\n"
      "a failure within a day: %s %%\n"
      "mean time between failures: %s h\n"
      "a checkpoint that takes %s s: every %.0f s\n",
      r.machines, number(100 * r.chance).c_str(), number(100 * chance).c_str(),
      number(between / 3600).c_str(), number(r.save).c_str(),
      pp::checkpoint_interval(r.save, between));
}

/// Waits before a restart. Returns the signal that asks for the end meanwhile; 0: none.
int pause(signals& all, double seconds) {
  for (auto const begin = clock::now();;) {
    double const left = seconds - seconds_since(begin);
    if (left <= 0) return 0;
    pollfd of{all.number(), POLLIN, 0};
    poll(&of, 1, int(left * 1000) + 1);
    while (int const s = all.take())
      if (signals::is_end(s)) return s;
  }
}

/// Starts the program until it ends well, the launcher is asked to end, or no restart is left.
/// Returns the exit code; the last line says how it came to it.
int launch(request const& r) {
  signals all;
  restart_budget budget(r.sizes, r.restarts, r.window, r.first_wait);
  auto const begin = clock::now();
  int processes = r.sizes.front();
  for (int restart = 0;; ++restart) {
    auto const start = clock::now();
    outcome o = world(r.world, all, processes, restart).run();
    std::string const after = number(seconds_since(start)) + " s after the start";
    auto const in_all = [&] {
      return " after " + count(restart, "restart", "s") + ", in " + number(seconds_since(begin)) +
             " s";
    };
    if (o.signal == 0 && o.is_good()) {
      if (restart > 0) say(count(processes, "process", "es") + " ended well" + in_all());
      return 0;
    }
    std::optional<next_start> next;
    if (o.signal == 0) next = budget.after_failure(seconds_since(begin));
    if (next) {
      processes = next->processes;
      say(o.words + ", " + after + ": starting " + count(processes, "process", "es") +
          (next->number > 0
               ? ", restart " + std::to_string(next->number) + " of " + std::to_string(r.restarts)
               : std::string(", which are fewer")) +
          ", in " + number(next->wait) + " s");
      o.signal = pause(all, next->wait);
      if (o.signal == 0) continue;
    }
    if (o.signal != 0) {
      say("ended by signal " + std::to_string(o.signal) + " (" + strsignal(o.signal) + ")" +
          in_all() + ": exit code " + std::to_string(128 + o.signal));
      return 128 + o.signal;
    }
    say(o.words + ", " + after + ": given up" + in_all() + ": exit code " + std::to_string(o.code));
    return o.code;
  }
}

int run(int argc, char** argv) {
  CLI::App app{
      "Starts the processes of a program on this machine, and starts all again when one fails.\n"
      "    pipe-run -n 4 --restarts 3 ./train --its-own arguments"};
  app.prefix_command();
  request r;
  world_settings& w = r.world;
  auto const time = [&](char const* name, double& value, char const* what) {
    return app.add_option(name, value, what)->check(why_no_time);
  };
  std::string sizes = "1";
  app.add_option("-n", sizes,
                 "processes [1]; 8,4,2: fewer when no restart with the number before is left")
      ->check([](std::string const& text) {
        return sizes_of(text).empty() ? "'" + text + "' is no number from 1 to 4096, nor a list"
                                      : "";
      });
  app.add_option("--min", r.least, "as a list of -n that goes down to this number one by one")
      ->check(CLI::Range(1, 4096));
  app.add_option("--restarts", r.restarts, "most restarts within the window [0]")
      ->check(CLI::Range(0, 1'000'000));
  time("--window", r.window,
       "time after which a restart no longer counts, in seconds; 0: never "
       "[3600]");
  time("--back-off", r.first_wait, "wait before a restart, which doubles up to 60 s [1]");
  time("--grace", w.grace, "time from a request to end to SIGKILL [30]");
  time("--hang", w.hang,
       "time without a completed call of a trainer that is a failure; 0: no limit "
       "[0]");
  app.add_flag("--prefix", w.is_prefixed, "writes `[RANK] ` before each line of output");
  auto* const interval =
      time("--interval", r.save, "prints how often to save, if a checkpoint takes this long");
  app.add_option("--machines", r.machines, "for --interval [1]")
      ->check(CLI::Range(1L, 1'000'000'000L));
  app.add_option("--failures", r.chance,
                 "for --interval: chance that a machine fails within a day [0.0027]")
      ->check(CLI::Range(1e-12, 0.999));
  try {
    app.parse(argc, argv);
    w.program = app.remaining();
    if (!w.program.empty() && w.program.front() == "--") w.program.erase(w.program.begin());
    if (interval->count() > 0) return print_interval(r), 0;
    if (w.program.empty()) throw CLI::RequiredError("a program");
    r.sizes = sizes_of(sizes);
    if (r.least > r.sizes.back()) throw CLI::ValidationError("--min", "is more than -n");
  } catch (CLI::ParseError const& e) {
    return app.exit(e) == 0 ? 0 : code_of_own_fault;
  }
  for (int n = r.sizes.back(); r.least > 0 && n > r.least;) r.sizes.push_back(--n);
  try {
    return launch(r);
  } catch (start_error const& e) {
    say("cannot start '" + w.program.front() + "': " + std::strerror(e.number));
    return e.number == ENOENT ? code_of_no_program : code_of_no_executable;
  } catch (std::exception const& e) {
    say(e.what());
    return code_of_own_fault;
  }
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
