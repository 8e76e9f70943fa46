// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints that earlier versions of the library wrote, one of each format: a run goes on from
// them as it did then. Who changes the format adds a file here, which the hidden case writes:
//
//     tests.train "[write]"
//
// and sees whether this version reads the others.
#include "catch.hpp"

#include <algorithm>
#include <cstddef>
#include <iomanip>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/weights/safetensors.hpp>

#include "golden/record.hpp"
#include "laws/centered.hpp"
#include "train/folder.hpp"

using namespace pp;

namespace {

/// A state of every kind: shared, frozen and grouped parameters, a buffer, averages, accumulated
/// gradients.
struct Net
    : Model<Tokens<5, 3>, Named<"table", Embedding<4>>, Dropout<1, 5>, Custom<laws::Centered>,
            Residual<LayerNorm, Linear<4>>, Frozen<Linear<4>>, Tied<"table">, CrossEntropy> {};
using trainer = Pipeline<Net, PortableHost, AdamW, Averaging<9, 10>, MicroBatches<2>,
                         MicroBatchSize<2>, Stages<2>>;

struct mini_batch {
  std::vector<int> inputs, labels;
  explicit mini_batch(int number) {
    for (int i = 0; i < trainer::samples * 3; ++i) {
      inputs.push_back((i * i + 3 * i * number + number) % 5);
      labels.push_back((i * number + 2 * i + 1) % 5);
    }
  }
  trainer::batch view() const { return {inputs, labels}; }
};
/// Losses and gradient norms of three steps, of which the first is one that was accumulated for.
std::vector<double> go_on(trainer& t) {
  std::vector<double> numbers;
  for (int number = 4; number <= 6; ++number) {
    step_result const r = t.step(mini_batch(number).view());
    numbers.push_back(r.loss), numbers.push_back(r.gradient_norm);
  }
  return numbers;
}

std::string path_of(int format) {
  return PIPE_TESTS_FOLDER "/train/checkpoint_format_" + std::to_string(format) + ".safetensors";
}

/// Writes the file of a run, with what comes of it as its position.
void write(std::string const& path) {
  trainer t({.seed = 11, .optimizer = {.learning_rate = 0.02}, .clip_norm = 2});
  t.step(mini_batch(1).view());
  t.step(mini_batch(2).view());
  t.accumulate(mini_batch(3).view());
  t.save(path);
  trainer later({.optimizer = {.learning_rate = 0.02}, .clip_norm = 2});
  later.load(path);
  std::ostringstream text;
  text << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (double const number : go_on(later)) text << number << ' ';
  t.save(path, text.str());
}

}  // namespace

TEST_CASE("write the checkpoint of the present format", "[.][write]") {
  write(path_of(detail::checkpoint_format));
}
TEST_CASE("a run goes on from the checkpoint of every format", "[train]") {
  for (int format = 1; format <= detail::checkpoint_format; ++format) {
    INFO("format " << format);
    trainer t({.optimizer = {.learning_rate = 0.02}, .clip_norm = 2});
    resumed_run const r = t.load(path_of(format));
    CHECK(r.steps == 2);
    CHECK(r.accumulated == 1);
    // The states that were read are now in the trainer, bit for bit.
    temporary_folder const folder;
    t.save(folder.file("again"), r.position);
    safetensors_file const then(path_of(format)), now(folder.file("again"));
    if (format == detail::checkpoint_format) CHECK(now.tensors().size() == then.tensors().size());
    for (safetensors_entry const& tensor : then.tensors()) {
      if (tensor.name == detail::checksums_name) continue;
      INFO(tensor.name);
      safetensors_entry const* const same = now.find(tensor.name);
      REQUIRE(same != nullptr);
      CHECK(same->shape == tensor.shape);
      CHECK(std::equal(same->bytes.begin(), same->bytes.end(), tensor.bytes.begin(),
                       tensor.bytes.end()));
    }
    // Further bits are those of a compiler and a processor: whether products are rounded.
    std::istringstream text(r.position.text);
    std::vector<double> expected;
    for (double number = 0; text >> number;) expected.push_back(number);
    REQUIRE(expected.size() == 6);
    golden::check_near("losses and norms", go_on(t), expected);
  }
}
TEST_CASE("a checkpoint of a format that is not read says which one is", "[train]") {
  temporary_folder const folder;
  std::string const file = content(path_of(detail::checkpoint_format)),
                    entry = R"("checkpoint":")" + std::to_string(detail::checkpoint_format) + '"';
  std::size_t const at = file.find(entry);
  REQUIRE(at != file.npos);
  trainer t;
  for (char const format : {'0', '9', 'x', ' '}) {
    std::string other = file;
    other[at + entry.size() - 2] = format;
    CHECK(sentence<data_error>([&] { t.load(folder.write("run", other)); }) ==
          "cannot load '" + folder.file("run") + "': it is a checkpoint of format '" + format +
              "'; this version of the library reads format 1");
  }
  CHECK(t.steps() == 0);
}
