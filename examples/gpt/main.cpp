// SPDX-License-Identifier: BSL-1.0
//
// A byte-level GPT with a million parameters, trained on a pipeline of four stages in two or three minutes.
//
//     gpt                                learns the C++ standard library's headers
//     gpt --data book.txt --steps 5000   learns a book
//     gpt --plan                         shows what the compiler decided
//     gpt --schedule zb-v --timeline     trains under another schedule, draws what the ranks did
//     gpt --save a.safetensors           keeps what it learned
//     gpt --load a.safetensors --steps 0 only writes
//     gpt.cuda --device cuda             trains on a GPU
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "gpt.hpp"

namespace {

/// The number a text is, all of it; NaN otherwise.
double number(std::string const& text) {
  char* end = nullptr;
  double const x = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0 ? x : NAN;
}

auto at_least(long least) {
  return [least](std::string const& text) {
    double const x = number(text);
    bool const good = x >= double(least) && x < 1e18 && x == std::floor(x);
    return good ? "" : "needs a whole number of at least " + std::to_string(least) + ", got '" + text + "'";
  };
}

std::string above_0(std::string const& text) {
  double const x = number(text);
  return x > 0 && std::isfinite(x) ? "" : "needs a number above 0, got '" + text + "'";
}

}  // namespace

std::map<std::string, program>& programs(std::string const& device) {
  static std::map<std::string, std::map<std::string, program>> all;
  return all[device];
}

int main(int count, char** arguments) {
  options o;
  CLI::App app("Trains a byte-level GPT with pipeline parallelism and lets it write.", "gpt");
  app.add_option("--data", o.data, "a file or a directory of text (default: the C++ standard library's headers)");
  app.add_option("--steps", o.steps, "training steps of 2048 bytes each")->check(at_least(0))->capture_default_str();
  app.add_option("--lr", o.learning_rate, "the highest learning rate")->check(above_0)->capture_default_str();
  app.add_option("--seed", o.seed, "of all random numbers")->check(at_least(0))->capture_default_str();
  app.add_option("--schedule", o.schedule, "one of those that are compiled in")
      ->check(CLI::IsMember(&programs()))
      ->capture_default_str();
  app.add_option("--device", o.device, "what trains")->check(CLI::IsMember({"cpu", "cuda"}))->capture_default_str();
  app.add_option("--generate", o.generate, "bytes to write after training")->check(at_least(0))->capture_default_str();
  app.add_option("--prompt", o.prompt, "the text to continue");
  app.add_option("--load", o.load, "the file of weights to begin with");
  app.add_option("--save", o.save, "the file for the weights at the end");
  app.add_option("--metrics", o.metrics, "the file that logs every step")->capture_default_str();
  app.add_option("--tensorboard", o.tensorboard, "the folder for TensorBoard's log of every step");
  app.add_option("--profile", o.profile, "measure the layers, write a header that cuts the next build by it, and stop")
      ->excludes("--device");
  app.add_flag("--plan", o.plan, "print the plan and stop");
  app.add_flag("--timeline", o.timeline, "draw the last step, as it was predicted and as it went");
  app.add_option("--page", o.page, "the file for the same drawings as a page to look into");
  try {
    app.parse(count, arguments);
    if (programs(o.device).empty())
      throw pp::error("this program was compiled without CUDA: `examples/run.sh --device cuda` compiles one by nvcc");
    (!o.profile.empty() ? measure : programs(o.device).at(o.schedule))(o);
    return 0;
  } catch (CLI::Success const& e) {
    return app.exit(e);
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
