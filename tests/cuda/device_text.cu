// SPDX-License-Identifier: BSL-1.0
//
// The example's text in device memory: Thrust gathers what the host draws, and a trainer takes its
// vectors as they are. Compiled wherever nvcc is; run wherever a GPU is. With Thrust in the file
// `using namespace pp` would make its `cuda` ambiguous in what nvcc generates.
#include "../../examples/gpt/device_text.cu"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "cuda/device_laws.hpp"

namespace {

struct Words : pp::Model<pp::Tokens<256, 16>, pp::Embedding<8>, pp::Positions, pp::LayerNorm,
                         pp::Linear<256>, pp::CrossEntropy> {};

/// A text of some words, in a file that ends with the test.
class text_file {
 public:
  text_file() {
    std::ofstream out(path_);
    for (int i = 0; i < 300; ++i)
      out << i << " times " << i + 1 << " makes " << i * (i + 1) << '\n';
  }
  ~text_file() { std::filesystem::remove(path_); }
  std::filesystem::path const& path() const { return path_; }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() / "pipe_device_text";
};

}  // namespace

TEST_CASE("Thrust gathers the windows that the host draws, and a trainer takes them", "[gpu]") {
  using trainer = pp::Pipeline<Words, pp::Cuda, pp::MicroBatches<2>, pp::MicroBatchSize<2>>;
  constexpr std::size_t tokens = trainer::samples * trainer::inputs_per_sample;
  text_file const file;
  pp::text_data const text(file.path(), trainer::inputs_per_sample);
  device_text gathered(text, trainer::inputs_per_sample, tokens);
  std::vector<int> inputs(tokens), labels(tokens);
  trainer on_host({.seed = 3}), on_device({.seed = 3}), of_vectors({.seed = 3});
  for (std::uint64_t step = 1; step < 4; ++step) {
    text.draw(7, step, inputs, labels);
    gathered.draw(7, step);
    double const loss = on_host.step({inputs, labels}).loss;
    CHECK(laws::same_bits(on_device.step({gathered.tokens(), gathered.labels()}).loss, loss));
    thrust::device_vector<int> const a(inputs), b(labels);
    CHECK(laws::same_bits(of_vectors.step({a, b}).loss, loss));
  }
  thrust::device_vector<int> const a(inputs);
  thrust::device_vector<float> outputs(tokens * 256);
  std::vector<float> expected(outputs.size()), found(outputs.size());
  on_host.forward(inputs, expected);
  of_vectors.forward(a, outputs);
  thrust::copy(outputs.begin(), outputs.end(), found.begin());
  CHECK(laws::same_numbers(found, expected));
}
