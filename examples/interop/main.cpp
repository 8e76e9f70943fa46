// SPDX-License-Identifier: BSL-1.0
//
// Weights that go to PyTorch and come back. Here and in check.py, `make` writes a net's weights,
// inputs and outputs, and `check` computes the outputs again from the weights and inputs that it
// finds, whichever program wrote them.
//
//     interop                             trains two nets, writes them to the folder `interop`,
//                                         checks what it reads
//     python3 examples/interop/check.py   checks these in PyTorch; then makes its own
//     interop check                       and those are checked here
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <CLI/CLI.hpp>

#include <pipe/train/weights.hpp>

#include "nets.hpp"

namespace {

template <class T>
pp::safetensors_entry tensor(char const* name, std::vector<T> const& numbers) {
  pp::stored_type const type = std::is_same_v<T, int> ? pp::stored_type::i32 : pp::stored_type::f32;
  long const count = Trainer<Mlp>::samples;  // of both nets
  return {name, type, {count, long(numbers.size()) / count}, std::as_bytes(std::span(numbers))};
}

template <class T>
std::vector<T> read(pp::safetensors_file const& file, char const* name, std::size_t count) {
  pp::stored_type const type = std::is_same_v<T, int> ? pp::stored_type::i32 : pp::stored_type::f32;
  pp::safetensors_entry const* const tensor = file.find(name);
  if (tensor == nullptr || tensor->type != type || tensor->bytes.size() != count * sizeof(T))
    throw pp::data_error("'" + file.name() + "': expected a tensor '" + name + "' of " +
                         std::to_string(count) + " " + pp::name_of(type));
  std::vector<T> numbers(count);
  std::memcpy(numbers.data(), tensor->bytes.data(), tensor->bytes.size());
  return numbers;
}

/// Trains a net and writes FOLDER/NAME.safetensors, and to FOLDER/NAME_run.safetensors what it
/// computes.
template <class M>
void make(std::string const& folder, std::string const& name, int steps) {
  Trainer<M> trainer({.seed = 1, .optimizer = {.learning_rate = 0.01}});
  samples<M> data;
  double first = 0, last = 0;
  for (int step = 0; step < steps; ++step) {
    draw(std::uint64_t(step), data);
    last = trainer.step({data.inputs, data.labels}).loss;
    if (step == 0) first = last;
  }
  std::vector<float> outputs(Trainer<M>::samples * Trainer<M>::outputs_per_sample);
  trainer.forward(data.inputs, outputs);
  pp::save_weights(trainer, folder + "/" + name + ".safetensors");
  pp::write_safetensors(folder + "/" + name + "_run.safetensors",
                        {tensor("inputs", data.inputs), tensor("outputs", outputs)});
  std::printf("made %s: loss %.3f -> %.3f in %d steps\n", name.c_str(), first, last, steps);
}

/// Whether the outputs here are those in the file, but for 1e-5 of the largest.
template <class M>
bool check(std::string const& folder, std::string const& name) {
  Trainer<M> trainer({.seed = 2});
  pp::load_weights(trainer, folder + "/" + name + ".safetensors");
  pp::safetensors_file const run(folder + "/" + name + "_run.safetensors");
  using input = typename Trainer<M>::input_type;
  auto const inputs =
      read<input>(run, "inputs", Trainer<M>::samples * Trainer<M>::inputs_per_sample);
  auto const expected =
      read<float>(run, "outputs", Trainer<M>::samples * Trainer<M>::outputs_per_sample);
  std::vector<float> outputs(expected.size());
  trainer.forward(inputs, outputs);
  float difference = 0, largest = 1;
  for (float const x : expected) largest = std::fmax(largest, std::fabs(x));
  bool fine = true;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    float const off = std::fabs(outputs[i] - expected[i]) / largest;
    fine = fine && off <= 1e-5f;  // not if it is no number
    difference = std::fmax(difference, off);
  }
  std::printf("checked %s: outputs of %d samples differ by %.1e of the largest%s\n", name.c_str(),
              Trainer<M>::samples, double(difference), fine ? "" : ": too much");
  return fine;
}

}  // namespace

int main(int count, char** arguments) {
  std::string task = "both", folder = "interop";
  CLI::App app("Trains two nets, and exchanges their weights with PyTorch.", "interop");
  app.add_option("task", task, "make, check, or both")
      ->check(CLI::IsMember({"make", "check", "both"}))
      ->capture_default_str();
  app.add_option("--folder", folder, "where the files are")->capture_default_str();
  try {
    app.parse(count, arguments);
    if (task != "check") {
      std::filesystem::create_directories(folder);
      make<Mlp>(folder, "mlp", 500);
      make<Gpt>(folder, "gpt", 500);
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
