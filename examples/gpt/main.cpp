// SPDX-License-Identifier: BSL-1.0
//
// A byte-level GPT with a million parameters, trained on a pipeline of four stages in two or three
// minutes.
//
//     gpt                                learns the C++ standard library's headers
//     gpt --data book.txt --steps 5000   learns a book
//     gpt --plan                         shows what the compiler decided
//     gpt --schedule zb-v --timeline     trains under another schedule, draws what the ranks did
//     gpt --schedule "steady zb-h2"      lets steps overlap: the same weights, sooner
//     gpt --save a.safetensors           keeps what it learned, also after Ctrl-C
//     gpt                                goes on where Ctrl-C, or a crash, has ended it
//     gpt --load a.safetensors --steps 0 only writes
//     gpt --replay 1000                  makes steps again and compares their bits with the run's
//     gpt.cuda --device cuda             trains on a GPU
//     pipe-run -n 4 gpt.tcp              trains in four processes
//     mpirun -n 4 gpt.mpi                the same by MPI
//
// Exit codes: 0 done, also after warnings of what cost the run nothing; 1 an error, or something
// that was asked for is not there or not complete; 2 wrong options; 130, 143 stopped by SIGINT,
// SIGTERM.
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>

#include <pipe/base/error.hpp>
#include <pipe/weights/distinct_files.hpp>

#include "../options.hpp"
#include "command.hpp"

namespace {

int code_of_warnings = 0;

/// What the program ends with. Output that did not get to where it should, say to a disk that is
/// full, is a failure.
int ended(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::string const reason = errno != 0 ? std::string(": ") + std::strerror(errno) : "";
  std::fprintf(stderr, "gpt: cannot write all of the output%s\n", reason.c_str());
  return code != 0 ? code : 1;
}

/// Throws if one of the files that are written is another of them, or one that is read, under
/// whatever name.
void check_files(options const& o) {
  // [distinct]
  using way = pp::files::file_use::way;
  pp::files::require_distinct({{"--data", o.data, way::read},
                               {"--load", o.load, way::read},
                               {"--save", o.save, way::written},
                               {"--metrics", o.metrics, way::written},
                               {"--tensorboard", o.tensorboard, way::added_to},
                               {"--watch-file", o.watch_file, way::written},
                               {"--profile", o.profile, way::written},
                               {"--page", o.page, way::written},
                               {"--checkpoints", o.checkpoints, way::added_to}});
  // [/distinct]
}

}  // namespace

void warn(std::string const& what, int code) {
  code_of_warnings = std::max(code_of_warnings, code);
  std::fflush(stdout);
  if (process() == 0) std::fprintf(stderr, "gpt: %s\n", what.c_str());
}

std::map<std::string, program>& programs(std::string const& device) {
  static std::map<std::string, std::map<std::string, program>> all;
  return all[device];
}

int main(int count, char** arguments) {
  std::signal(SIGPIPE,
              SIG_IGN);  // who stops reading the output or the metrics does not end the training
  if (process() != 0 && std::freopen("/dev/null", "w", stdout) == nullptr)
    return 1;  // one of several processes speaks
  options o;
  CLI::App app("Trains a byte-level GPT with pipeline parallelism and lets it write.", "gpt");
  app.add_option("--data", o.data,
                 "a file or a directory of text (default: the C++ standard library's headers)");
  app.add_option("--steps", o.steps, "training steps of 2048 bytes each")
      ->check(whole<long>)
      ->capture_default_str();
  app.add_option("--lr", o.learning_rate, "the highest learning rate")
      ->check(above_0)
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of all random numbers")
      ->check(whole<std::uint64_t>)
      ->capture_default_str();
  app.add_option("--schedule", o.schedule,
                 "one of those that are compiled in; all make the same weights but pipedream, "
                 "pipedream-2bw and paci, which have no flush")
      ->check(CLI::IsMember(&programs()))
      ->capture_default_str();
  app.add_option("--device", o.device, "what trains")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->capture_default_str();
  app.add_flag("--data-on-device", o.on_device,
               "keep the text in the GPU's memory and gather mini-batches there");
  app.add_option("--generate", o.generate, "bytes to write after training")
      ->check(whole<long>)
      ->capture_default_str();
  app.add_flag("--generate-on-device", o.generates_on_device,
               "write them with the GPU, whose logits stay there");
  app.add_option("--prompt", o.prompt, "the text to continue");
  app.add_option("--load", o.load, "the file of weights to begin with");
  app.add_option("--save", o.save, "the file for the weights at the end, which Ctrl-C brings on");
  app.add_option("--checkpoints", o.checkpoints,
                 "the folder for checkpoints, from which an interrupted run goes on")
      ->capture_default_str();
  app.add_option("--checkpoint-every", o.checkpoint_every,
                 "steps between checkpoints (default: one every minute)")
      ->check(whole<long>);
  app.add_flag("--resume", o.resume,
               "go on with the run that is there, whatever its options, or stop");
  app.add_option("--replay", o.replay,
                 "make the steps from the newest checkpoint before STEP to it again, with the "
                 "options of the run, and compare their bits with its log: the program ends with 0 "
                 "if all are as recorded, with 3 if not")
      ->type_name("STEP")
      ->check(whole<long, 1>)
      ->excludes("--resume");
  app.add_option("--metrics", o.metrics,
                 "the file that logs every step, .jsonl as JSON; one that exists is left alone")
      ->capture_default_str();
  app.add_option("--tensorboard", o.tensorboard, "the folder for TensorBoard's log of every step");
  std::optional<std::uint16_t> port;
  app.add_option("--watch", port,
                 "serve a page that shows the run at this port of 127.0.0.1 (0: a free one)");
  app.add_option("--watch-file", o.watch_file, "write that page to a file every ten seconds");
  app.add_option("--profile", o.profile,
                 "measure the layers, write a header that cuts the next build by it, and stop")
      ->excludes("--device");
  app.add_option(
         "--profile-spread", o.profile_spread,
         "most spread of a launch's times that --profile accepts: the range of their middle "
         "half, of their median")
      ->capture_default_str();
  app.add_flag("--plan", o.plan, "print the plan and stop");
  app.add_flag("--timeline", o.timeline,
               "draw the last step, or steps that overlap, as predicted and as measured");
  app.add_option("--page", o.page, "the file for the same drawings as a page to look into");
  try {
    app.parse(count, arguments);
    check_files(o);
    if (port) o.watch = pp::page_address{.port = *port};
    if (process() != 0) o.page.clear();
    if (programs(o.device).empty())
      throw pp::error(
          "this program was compiled without CUDA: `examples/run.sh --device cuda` compiles one by "
          "nvcc");
    if (o.on_device && o.device != "cuda") throw pp::error("--data-on-device needs --device cuda");
    if (o.generates_on_device && o.device != "cuda")
      throw pp::error("--generate-on-device needs --device cuda");
    if (!programs(o.device).contains(o.schedule))
      throw pp::error("--schedule " + o.schedule + " needs --device cpu");
    program const run = !o.profile.empty() ? measure : programs(o.device).at(o.schedule);
    if (run == nullptr)
      throw pp::error(
          "this program was compiled without that schedule: `examples/run.sh --schedule '" +
          o.schedule + "'` compiles it");
    run(o);
    return ended(code_of_warnings);
  } catch (CLI::Success const& e) {
    return ended(app.exit(e));
  } catch (CLI::ParseError const& e) {
    std::fprintf(stderr, "gpt: %s (gpt --help lists the options)\n", e.what());
    return 2;
  } catch (pp::not_finite const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "gpt: %s (a smaller --lr may help)\n", e.what());
    return 1;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "gpt: %s\n", e.what());
    return 1;
  }
}
