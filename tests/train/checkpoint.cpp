// SPDX-License-Identifier: BSL-1.0
//
// Checkpoints: n steps are k steps, save, load in another trainer, and n - k steps, bit for bit,
// whatever the cut, the schedule, threads and recomputation of the two.
#include "catch.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/train/batches.hpp>
#include <pipe/weights/weights.hpp>

#include "laws/centered.hpp"
#include "laws/resume_law.hpp"
#include "laws/schedules.hpp"

using namespace pp;
using laws::resumes;

namespace {

/// Shared, frozen and grouped parameters, buffers that follow statistics, random bits.
struct Run : Model<Tokens<7, 4>, Named<"table", Embedding<6>>, Positions, Dropout<1, 5>,
                   Custom<laws::Centered>, Residual<LayerNorm, Attention<2>>,
                   Group<LearningRate<1, 2>, Residual<LayerNorm, Linear<9>, GELUTanh, Linear<6>>>,
                   Frozen<Linear<6>>, Tied<"table">, CrossEntropy> {};
template <class... More>
using Of =
    Pipeline<Run, PortableHost, Averaging<9, 10>, MicroBatches<4>, MicroBatchSize<2>, More...>;
using one = Of<AdamW>;
using five = Of<AdamW, Stages<5>, OneFOneB>;
using folded = Of<AdamW, Stages<4>, ZeroBubbleV, HostThreads<2>, RecomputeAllButLast>;

/// A part of every kind.
struct Small : Model<Input<3>, Linear<7>, Tanh, LayerNorm, Linear<2>, MSE> {};
template <class Optimizer, class... More>
using Trained = Pipeline<Small, PortableHost, Optimizer, MicroBatches<2>, Stages<2>, More...>;

/// Trains on `last` mini-batches of a data set. A later call goes on.
template <class Trainer>
void train(std::string const& path, typename Trainer::batch const& data, long last) {
  // [resume]
  Trainer trainer({.seed = 1});
  long done = 0;  // mini-batches
  if (std::filesystem::exists(path)) done = trainer.load(path).position.number();
  while (done < last) {
    batches<Trainer> epoch(data, {.shuffle = true, .seed = 1, .position = done});
    for (auto const& batch : epoch) {
      trainer.step(batch);
      done = epoch.position();
      if (trainer.steps() % 2 == 0) trainer.save(path, done);
      if (done == last) break;
    }
  }
  // [/resume]
}

}  // namespace

TEST_CASE("a run is resumed under another cut and schedule", "[train]") {
  resumes<one, five>();
  resumes<five, one>(1);
  resumes<five, five>(2);
  resumes<folded, five>();
  resumes<one, folded>(2);
}
TEST_CASE("a program that ends and begins again trains as one that does not end", "[train]") {
  using Trainer = Trained<AdamW>;
  temporary_folder const folder;
  std::vector<float> x(3 * 10), y(2 * 10);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = float(i % 7) / 7;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = float(i % 5) / 5;
  train<Trainer>(folder.file("whole"), {x, y}, 12);
  for (long const last : {1, 5, 6, 9, 12}) train<Trainer>(folder.file("parts"), {x, y}, last);
  CHECK(same_content(folder.file("whole"), folder.file("parts")));
}
TEST_CASE("a run goes on from a checkpoint of other arithmetic, and says so", "[train]") {
  using Trainer = Trained<AdamW>;
  temporary_folder const folder;
  std::string const path = folder.file("run");
  Trainer trainer;
  trainer.save(path);
  CHECK(trainer.load(path).other_bits == "");
  CHECK(trainer.runs_on() == host::name_of_kernels(host::isa::portable));
  if (host::best_isa() < host::isa::avx2) return;
  Pipeline<Small, HostKernels<host::isa::avx2>, AdamW, MicroBatches<2>> other({.seed = 3});
  CHECK(other.load(path).other_bits ==
        "'" + path + "' is of a run on " + host::arithmetic_of(host::isa::portable) +
            ", this one is on " + host::arithmetic_of(host::isa::avx2) +
            ": from here on its bits are not those of a run that was never stopped");
  CHECK(laws::same_numbers(laws::snapshot(trainer).values, laws::snapshot(other).values));
}
TEST_CASE("weights are loaded from a checkpoint", "[train]") {
  temporary_folder const folder;
  std::string const path = folder.file("run.safetensors");
  five trained(laws::settings_of<five>(1));
  trained.save(path);
  one trainer;
  // [weights]
  load_report const report = load_weights(trainer, path, load_policy::partial);
  // [/weights]
  CHECK(report.missing.empty());
  CHECK(laws::same_numbers(laws::snapshot(trained).values, laws::snapshot(trainer).values));
}
TEST_CASE("numbers that are none keep their bits", "[train]") {
  temporary_folder const folder;
  one a;
  five b;
  auto const table = a.parameters()[0].values;
  for (std::uint32_t const bits : {0x7F800000u, 0xFF800000u, 0x7FC12345u, 0x80000000u, 1u})
    table[bits % 41] = std::bit_cast<float>(bits);
  a.parameters_changed();
  a.save(folder.file("a"));
  b.load(folder.file("a"));
  CHECK(laws::same_parameters(a, b));
}
