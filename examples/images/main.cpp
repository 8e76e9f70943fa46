// SPDX-License-Identifier: BSL-1.0
//
// A residual network with batch norms learns the letters and digits of the installed fonts, is
// judged by families of fonts that it has not seen, and shows what it gets wrong.
//
//     images                                        two to three minutes; writes images.html
//     images --fonts ~/my-fonts                     other fonts
//     images --mnist IMAGES LABELS IMAGES LABELS    files of MNIST, the last two for the test
//     images --cifar data_batch_*.bin test_batch.bin
//
// Ctrl-C ends the training; what it has learned until then is judged. Exit codes: 0 done; 1 an
// error; 2 wrong options; 130, 143 stopped by SIGINT, SIGTERM.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/report/progress_line.hpp>
#include <pipe/report/text_table.hpp>
#include <pipe/report/write_file.hpp>
#include <pipe/train/stop_request.hpp>
#include <pipe/weights/distinct_files.hpp>

#include "../options.hpp"
#include "../outputs.hpp"
#include "page.hpp"
#include "train.hpp"

namespace {

struct options {
  training_options training;
  std::vector<std::string> fonts = font_folders(), mnist, cifar;
  std::string out = "images.html", command;
};

/// Writes the page and prints what the network gets wrong.
void show(options const& o, image_task const& task, trained const& result) {
  pp::files::write_file(o.out, page_of(task, result, o.command));
  pp::console::text_table table({"is", "says", "times"}, {0, 1});
  std::vector<confused_pair> const pairs = confused_pairs(task, result);
  for (std::size_t i = 0; i < std::min<std::size_t>(pairs.size(), 8); ++i)
    table.add({task.class_names[std::size_t(pairs[i].is)],
               task.class_names[std::size_t(pairs[i].says)], std::to_string(pairs[i].count)});
  if (!pairs.empty()) std::printf("\n%s", table.str().c_str());
  std::printf("\nimages_error %.2f %% of %zu pictures kept back, loss %.3f, after %ld steps\n",
              100 * error_of(task, result), result.answers.size(), result.loss, result.steps);
  std::printf("wrote %s\n", o.out.c_str());
}

int run(options const& o) {
  image_task const task = !o.mnist.empty()   ? mnist_of(o.mnist)
                          : !o.cifar.empty() ? cifar_of(o.cifar)
                                             : glyphs_of(o.fonts);
  network const net = !o.mnist.empty()   ? mnist_network()
                      : !o.cifar.empty() ? cifar_network()
                                         : glyph_network();
  require_writable({o.out, o.training.save});
  long const steps = steps_of(task, o.training, net.samples);
  std::printf("task: %s\nnetwork: %s; %ld steps of %ld pictures\n", task.words.c_str(),
              net.words.c_str(), steps, net.samples);
  std::fflush(stdout);
  pp::stop_request stop;
  pp::progress_line line(steps);
  net.train(
      task, o.training,
      [&](pp::step_metrics const& m) {
        line.write(m);
        return !stop;
      },
      [&](trained const& result) {
        line.end();
        show(o, task, result);
        if (stop)
          std::fprintf(stderr, "images: stopped by %s after %ld of %ld steps\n", stop.name(),
                       result.steps, steps);
      });
  return std::fflush(stdout) == 0 ? stop.exit_code() : 1;
}

}  // namespace

int main(int count, char** arguments) {
  options o;
  o.command = "examples/run.sh images";
  for (int i = 1; i < count; ++i) o.command += std::string(" ") + arguments[i];
  CLI::App app("Trains a residual network on pictures and shows what it gets wrong.", "images");
  app.add_option("--epochs", o.training.epochs, "passes over the pictures")
      ->check(CLI::Range(1L, 100000L))
      ->capture_default_str();
  app.add_option("--steps", o.training.steps,
                 "ends after that many mini-batches, if that is sooner")
      ->check(whole<long, 1>);
  app.add_option("--lr", o.training.learning_rate, "the highest learning rate")
      ->check(above_0)
      ->capture_default_str();
  app.add_option("--seed", o.training.seed, "of all random numbers")
      ->check(whole<std::uint64_t>)
      ->capture_default_str();
  auto* const fonts =
      app.add_option("--fonts", o.fonts, "folders of fonts")->check(CLI::ExistingDirectory);
  auto* const mnist = app.add_option("--mnist", o.mnist,
                                     "images and labels to learn from, images and labels of the "
                                     "test: four idx files")
                          ->expected(4)
                          ->excludes(fonts);
  app.add_option("--cifar", o.cifar, "binary files of CIFAR-10, the last for the test")
      ->expected(2, 100)
      ->excludes(fonts)
      ->excludes(mnist);
  app.add_option("--out", o.out, "the page of wrong answers")->capture_default_str();
  app.add_option("--save", o.training.save, "a safetensors file for the weights");
  try {
    app.parse(count, arguments);
    using way = pp::files::file_use::way;
    std::vector<pp::files::file_use> files{{"--out", o.out, way::written},
                                           {"--save", o.training.save, way::written}};
    for (std::string const& file : o.mnist) files.push_back({"--mnist", file, way::read});
    for (std::string const& file : o.cifar) files.push_back({"--cifar", file, way::read});
    pp::files::require_distinct(files);
    return run(o);
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    std::fprintf(stderr, "images: %s (images --help lists the options)\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "images: %s\n", pp::console::terminal_escaped(e.what()).c_str());
    return 1;
  }
}
