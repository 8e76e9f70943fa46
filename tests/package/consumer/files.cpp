// SPDX-License-Identifier: BSL-1.0
//
// A program that saves and loads a run and its weights, and prints the bits and the messages.
#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/pipe.hpp>
#include <pipe/weights/weights.hpp>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

struct Line : pp::Model<pp::Input<3>, pp::Linear<4>, pp::Tanh, pp::Linear<1>, pp::MSE> {};
using Trainer =
    pp::Pipeline<Line, pp::MicroBatches<2>, pp::MicroBatchSize<4>, pp::AdamW, pp::PortableHost>;

static void print_bytes(char const* path) {
  std::ifstream file(path, std::ios::binary);
  std::string const bytes((std::istreambuf_iterator<char>(file)), {});
  unsigned long sum = 0;
  for (char const c : bytes) sum = sum * 31 + static_cast<unsigned char>(c);
  std::printf("%zu bytes, %lx\n", bytes.size(), sum);
}
template <class Work>
static void print_refusal(Work work) {
  try {
    work();
    std::puts("nothing was refused");
  } catch (pp::error const& e) {
    std::puts(e.what());
  }
}

int main() {
  std::vector<float> points, values;
  for (int i = 0; i < 8; ++i) {
    for (int k = 0; k < 3; ++k) points.push_back(float((i * 5 + k * 3) % 7) / 4 - 1);
    values.push_back(float(i) / 8);
  }
  Trainer saved, resumed;
  for (int i = 0; i < 5; ++i) saved.step({points, values});
  saved.save("files.run", 40);
  pp::resumed_run const run = resumed.load("files.run");
  std::printf("%ld steps, position %ld\n", run.steps, run.position.number());
  std::printf("%a %a\n", double(saved.step({points, values}).loss),
              double(resumed.step({points, values}).loss));
  print_bytes("files.run");

  pp::save_weights(saved, "files.safetensors");
  pp::save_weights(saved, "files.f16.safetensors", pp::files::stored_type::f16);
  Trainer loaded;
  std::printf("%zu loaded\n", pp::load_weights(loaded, "files.safetensors").loaded.size());
  std::printf("%a\n", double(loaded.evaluate({points, values})));
  pp::load_weights(loaded, "files.f16.safetensors");
  std::printf("%a\n", double(loaded.evaluate({points, values})));
  print_bytes("files.safetensors");

  print_refusal([&] { loaded.load("files.safetensors"); });
  print_refusal([&] { loaded.load("there is none"); });
  print_refusal([&] { pp::load_weights(loaded, "files.run"); });
  std::ofstream("files.damaged") << "no safetensors file at all";
  print_refusal([&] { pp::load_weights(loaded, "files.damaged"); });
}
