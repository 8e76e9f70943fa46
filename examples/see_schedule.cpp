// SPDX-License-Identifier: BSL-1.0
//
// Draws a schedule as text and as a picture, and a training step as a page and a trace, predicted
// and measured.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/pipe.hpp>
#include <pipe/report/html.hpp>
#include <pipe/report/svg.hpp>
#include <pipe/report/terminal.hpp>
#include <pipe/report/trace.hpp>
#include <pipe/report/trainer_drawing.hpp>
#include <pipe/report/write_file.hpp>

namespace {

struct Wide : pp::Model<pp::Input<64>, pp::Linear<256>, pp::GELUTanh, pp::Linear<256>, pp::GELUTanh,
                        pp::Linear<256>, pp::GELUTanh, pp::Linear<64>, pp::MSE> {};
using Trainer = pp::Pipeline<Wide, pp::Stages<4>, pp::MicroBatches<8>, pp::MicroBatchSize<16>,
                             pp::OneFOneB, pp::SGD>;

void draw_schedule(std::string const& folder) {
  // [schedule]
  auto const problem =
      pp::schedules::equal_times(4, 8);  // ranks and micro-batches; F, B and W take one unit each
  auto const table = pp::schedules::make_table<pp::OneFOneB, 4, 8>(problem);
  pp::drawings::drawing const paper = pp::drawings::of_table(
      problem, table, pp::schedules::simulate(problem, table), {"1F1B on four ranks"});
  std::fputs(
      pp::drawings::as_text(paper, {.width = 66, .colours = pp::console::wants_colour(stdout)})
          .c_str(),
      stdout);
  pp::files::write_file(folder + "/schedule.svg", pp::drawings::as_svg(paper, {.critical = true}));
  // [/schedule]
}

void draw_step(std::string const& folder, std::string const& title) {
  std::vector<float> const values(Trainer::samples * Trainer::inputs_per_sample, 0.5f);
  Trainer trainer({.seed = 1});
  // [step]
  trainer.step({values, values});  // the first step is slower than those that follow
  pp::drawings::seen_kernels<Trainer> kernels;
  trainer.watch({values, values},
                kernels.watcher());  // or trainer.step, when no kernels are to be seen

  pp::drawings::drawing const predicted = pp::drawings::of_plan<Trainer>();
  pp::drawings::drawing measured = pp::drawings::of_last_run(trainer, title);
  kernels.add_to(measured);
  pp::files::write_file(folder + "/step.html", pp::drawings::as_html(predicted, measured));
  pp::files::write_file(folder + "/step.json", pp::drawings::as_trace(predicted, measured));
  // [/step]
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = ".", title = "A training step";
  CLI::App app("Writes schedule.svg, step.html and step.json.");
  app.add_option("--out", folder, "Where to (default: here)");
  app.add_option("--title", title, "What the step is called");
  CLI11_PARSE(app, argc, argv);
  try {
    std::filesystem::create_directories(folder);
    draw_schedule(folder);
    draw_step(folder, title);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
