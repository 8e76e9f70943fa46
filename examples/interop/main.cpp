// SPDX-License-Identifier: BSL-1.0
//
// Runs that go to PyTorch and come back. Here and in check.py, `make` trains two nets and writes
// their weights, the optimizer's state, outputs, and the losses of the steps that follow; `check`
// computes outputs and losses again from the weights and the state that it finds, whichever program
// wrote them.
//
//     interop                             trains two nets, writes them to the folder `interop`,
//                                         checks what it reads
//     python3 examples/interop/check.py   checks these in PyTorch; then makes its own
//     interop check                       and those are checked here
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/checkpoint/optimizer_state.hpp>
#include <pipe/weights/weights.hpp>

#include "../options.hpp"
#include "../outputs.hpp"
#include "nets.hpp"

namespace {

constexpr int later = 20;  // steps after those that made the files

/// shape: numbers[rows, ...]
template <class T>
pp::safetensors_entry tensor(char const* name, std::vector<T> const& numbers, long rows) {
  pp::files::stored_type const type =
      std::is_same_v<T, int> ? pp::files::stored_type::i32 : pp::files::stored_type::f32;
  return {name, type, {rows, long(numbers.size()) / rows}, std::as_bytes(std::span(numbers))};
}

template <class T>
std::vector<T> read(pp::safetensors_file const& file, char const* name, std::size_t count) {
  pp::files::stored_type const type =
      std::is_same_v<T, int> ? pp::files::stored_type::i32 : pp::files::stored_type::f32;
  pp::safetensors_entry const* const tensor = file.find(name);
  if (tensor == nullptr || tensor->type != type || tensor->bytes.size() != count * sizeof(T))
    throw pp::data_error("'" + file.name() + "': expected a tensor '" + name + "' of " +
                         std::to_string(count) + " " + pp::files::name_of(type));
  std::vector<T> numbers(count);
  std::memcpy(numbers.data(), tensor->bytes.data(), tensor->bytes.size());
  return numbers;
}

/// Results of a net with FOLDER/NAME.safetensors: outputs of a mini-batch, then the losses of
/// `later` steps, of which that is the first.
template <class M>
struct computed {
  using trainer = Trainer<M>;
  static constexpr long inputs = trainer::samples * trainer::inputs_per_sample,
                        labels = trainer::samples * trainer::labels_per_sample;
  std::vector<float> outputs, losses;

  computed(trainer& t, samples<M> const& data)
      : outputs(trainer::samples * trainer::outputs_per_sample) {
    t.forward(std::span(data.inputs).first(inputs), outputs);
    for (long step = 0; step < later; ++step)
      losses.push_back(float(t.step({std::span(data.inputs).subspan(step * inputs, inputs),
                                     std::span(data.labels).subspan(step * labels, labels)})
                                 .loss));
  }
};

template <class M>
Trainer<M> trainer_of(std::uint64_t seed) {
  return Trainer<M>({.seed = seed, .optimizer = {.learning_rate = 0.01}});
}

/// Trains a net and writes FOLDER/NAME.safetensors and FOLDER/NAME_optimizer.safetensors; and to
/// FOLDER/NAME_run.safetensors what it computes from there on.
template <class M>
void make(std::string const& folder, std::string const& name, int steps) {
  Trainer<M> trainer = trainer_of<M>(1);
  samples<M> data;
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    data = {};
    draw(std::uint64_t(step), data);
    losses.push_back(trainer.step({data.inputs, data.labels}).loss);
  }
  // [save]
  pp::save_weights(trainer, folder + "/" + name + ".safetensors");
  pp::save_optimizer_state(trainer, folder + "/" + name + "_optimizer.safetensors");
  // [/save]
  data = {};
  for (int step = steps; step < steps + later; ++step) draw(std::uint64_t(step), data);
  computed<M> const run(trainer, data);
  long const batch = Trainer<M>::samples;
  pp::write_safetensors(
      folder + "/" + name + "_run.safetensors",
      {tensor("inputs", data.inputs, later * batch), tensor("labels", data.labels, later * batch),
       tensor("outputs", run.outputs, batch), tensor("losses", run.losses, later)});
  if (steps > 0)
    std::printf("made %s: loss %.3f -> %.3f in %d steps\n", name.c_str(), losses.front(),
                losses.back(), steps);
}

/// The largest difference of two lists, each divided by what unit(expected) says.
template <class Unit>
double difference(std::vector<float> const& found, std::vector<float> const& expected,
                  Unit const& unit) {
  double largest = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    double const off = std::fabs(double(found[i]) - double(expected[i])) / unit(expected[i]);
    largest = off <= largest ? largest : off;  // NaN stays
  }
  return largest;
}

/// Whether the outputs here are those in the file, but for 1e-5 of the largest, and the losses but
/// for 1e-5 of each.
template <class M>
bool check(std::string const& folder, std::string const& name) {
  Trainer<M> trainer = trainer_of<M>(2);
  // [load]
  pp::load_weights(trainer, folder + "/" + name + ".safetensors");
  pp::load_optimizer_state(trainer, folder + "/" + name + "_optimizer.safetensors");
  // [/load]
  pp::safetensors_file const file(folder + "/" + name + "_run.safetensors");
  samples<M> const data{
      read<typename Trainer<M>::input_type>(file, "inputs", later * computed<M>::inputs),
      read<int>(file, "labels", later * computed<M>::labels)};
  computed<M> const run(trainer, data);
  double largest = 1;
  auto const outputs = read<float>(file, "outputs", run.outputs.size());
  for (float const x : outputs) largest = std::fmax(largest, std::fabs(double(x)));
  double const of_outputs = difference(run.outputs, outputs, [&](float) { return largest; });
  double const of_losses = difference(run.losses, read<float>(file, "losses", later),
                                      [](float loss) { return double(loss); });
  bool const fine = of_outputs <= 1e-5 && of_losses <= 1e-5;  // not if one is no number
  std::printf(
      "checked %s: outputs of %d samples differ by %.1e of the largest, losses of %d steps by "
      "%.1e%s\n",
      name.c_str(), Trainer<M>::samples, of_outputs, later, of_losses, fine ? "" : ": too much");
  return fine;
}

}  // namespace

int main(int count, char** arguments) {
  std::string task = "both", folder = "interop";
  int steps = 500;
  CLI::App app("Trains two nets, and exchanges their runs with PyTorch.", "interop");
  app.add_option("task", task, "make, check, or both")
      ->check(CLI::IsMember({"make", "check", "both"}))
      ->capture_default_str();
  app.add_option("--folder", folder, "where the files are")->capture_default_str();
  app.add_option("--steps", steps, "steps before the files are made")
      ->check(whole<int>)
      ->capture_default_str();
  try {
    app.parse(count, arguments);
    if (task != "check") {
      make_folder(folder);
      make<Mlp>(folder, "mlp", steps);
      make<Gpt>(folder, "gpt", steps);
    }
    bool fine = true;
    if (task != "make") {
      fine = check<Mlp>(folder, "mlp");
      fine = check<Gpt>(folder, "gpt") && fine;
    }
    return fine ? 0 : 1;
  } catch (CLI::Success const& e) {
    return app.exit(e);
  } catch (CLI::ParseError const& e) {
    std::fprintf(stderr, "interop: %s (interop --help lists the options)\n", e.what());
    return 2;
  } catch (std::exception const& e) {
    std::fflush(stdout);
    std::fprintf(stderr, "interop: %s\n", e.what());
    return 1;
  }
}
