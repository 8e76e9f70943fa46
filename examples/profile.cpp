// SPDX-License-Identifier: BSL-1.0
//
// Measures the layers of a model, and says what a cut by their times gains over the cut by
// estimates: the model has a layer whose estimate is far too small.
//
//     examples/run.sh profile
//     examples/run.sh profile --write net_profile.hpp     for pp::ByProfile<net_profile>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/explain_profile.hpp>

#include "options.hpp"
#include "outputs.hpp"

namespace {

/// y = sin(x). It says that a sine is one operation.
struct Sine {
  static constexpr pp::sample_shape result(pp::sample_shape in) { return in; }
  static constexpr int parameters = 0;
  static constexpr bool samples_are_independent = true;
  static constexpr long flops(pp::sample_shape in) { return in.elements(); }

  template <class T>
  static void forward(pp::custom::forward<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) a.y[i] = std::sin(a.x[i]);
  }
  template <class T>
  static void input_gradient(pp::custom::input_gradient<T> const& a) {
    for (long i = 0; i < a.samples * a.in.elements(); ++i) a.dx[i] = a.dy[i] * std::cos(a.x[i]);
  }
};

// Waves first, as where a network learns a picture from coordinates.
struct Waves
    : pp::Model<pp::Input<32>, pp::Linear<192>, pp::Custom<Sine>, pp::Linear<192>, pp::Custom<Sine>,
                pp::Linear<192>, pp::ReLU, pp::Linear<192>, pp::ReLU, pp::Linear<192>, pp::ReLU,
                pp::Linear<192>, pp::ReLU, pp::Linear<3>, pp::MSE> {};

// [profile]
using OneStage = pp::Pipeline<Waves, pp::MicroBatches<8>, pp::MicroBatchSize<16>>;
using FourStages = pp::Planned<Waves, pp::Stages<4>, pp::MicroBatches<8>, pp::MicroBatchSize<16>,
                               pp::ZeroBubbleH1>;

void profile(int repeats, double most_spread, std::string const& file) {
  OneStage trainer({.seed = 1});
  std::vector<float> const inputs(OneStage::samples * OneStage::inputs_per_sample, 0.5f),
      targets(OneStage::samples * OneStage::labels_per_sample, 0.25f);
  auto const times = pp::measure_layers(trainer, {inputs, targets}, repeats, most_spread);
  std::fputs(pp::explain_profile<FourStages>(times).c_str(), stdout);
  if (!file.empty()) pp::write_profile(file, "net_profile", times);
}
// [/profile]

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures layers, and compares the cut by their times with the cut by estimates."};
  int repeats = 50;
  double most_spread = 0.5;
  std::string file;
  app.add_option("--repeats", repeats, "training steps that are measured")
      ->check(whole<int, 1>)
      ->capture_default_str();
  app.add_option("--spread", most_spread,
                 "most spread of a launch's times: the range of their middle half, of their median")
      ->capture_default_str();
  app.add_option("--write", file, "the header for the times, as struct net_profile");
  CLI11_PARSE(app, argc, argv);
  try {
    require_writable({file});
    profile(repeats, most_spread, file);
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
