// SPDX-License-Identifier: BSL-1.0
//
// Steps that overlap in replicas: each rank adds its gradients up with the same rank of the others
// before it updates, and nothing else waits.
#include "mpi/alike.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <pipe/checkpoint/checkpoint.hpp>
#include <pipe/report/trainer_drawing.hpp>
#include <pipe/schedule/catalog/families.hpp>

#include "message_of.hpp"
#include "mpi/folder.hpp"

using namespace pp;

namespace {

/// The variance of samples that are there twice is that of the samples, if it is biased.
struct Net : Model<Input<2, 3>, Linear<8, NoBias>, With<BatchNorm, BiasedVariance>, GELUTanh,
                   Linear<8>, GELUTanh, Linear<4>, MSE> {};
template <class Family, int Ranks, class... More>
using Of = Pipeline<Net, PortableHost, AdamW, Stages<Ranks>, MicroBatches<2>, MicroBatchSize<2>,
                    Averaging<9, 10>, Family, More...>;

struct numbers {
  std::vector<double> losses, norms;
  void operator()(step_result const& r) {
    losses.push_back(r.loss), norms.push_back(r.gradient_norm);
  }
  bool operator==(numbers const&) const = default;
};

/// Two calls of train() on the same mini-batches, the first of which ends early.
template <class One, class Many>
void trains_alike(One& one, std::vector<typename One::batch> const& data, Many& many,
                  std::vector<typename Many::batch> const& same) {
  INFO(Many::plan().schedule << ", process " << Between::process() << " of "
                             << Between::processes());
  for (int call = 0; call < 2; ++call) {
    numbers a, b;
    auto const early = [&](numbers& of) {
      return [&, call](step_result const& r) { return of(r), call > 0 || of.losses.size() < 3; };
    };
    CHECK(one.train(data, early(a)) == many.train(same, early(b)));
    CHECK(a == b);
    CHECK(a.losses.size() >= 3);
    CHECK(processes::same_parameters(one, many));
  }
  one.swap_averages(), many.swap_averages();
  CHECK(processes::same_values(one, many));
  one.swap_averages(), many.swap_averages();
  drawings::drawing const d = drawings::of_last_run(many);
  CHECK(d.replicas == 2);
  CHECK(d.steps == 4);
}

/// Two versions: a mini-batch reads those of the one before it, in one process and in two replicas.
template <int Ranks>
void reads_the_version_before() {
  using One = Of<PipeDream2BW<>, Ranks, GradientAccumulation<2>>;
  using Many = Of<PipeDream2BW<>, Ranks, Between>;
  if (Between::processes() != 2 * Ranks) return;
  One one({.seed = 3, .clip_value = 0.1});
  Many many({.seed = 3, .clip_value = 0.1});
  CHECK(many.batch_samples() == One::samples);
  std::vector<laws::sample_batch<One>> all;
  for (int i = 0; i < 9; ++i) all.emplace_back(std::uint64_t(100 + i));
  std::vector<typename One::batch> data;
  std::vector<typename Many::batch> same;
  for (std::size_t i = 0; i < all.size(); ++i) {
    int const samples = i == 2 || i == 7 ? 1
                        : i == 5         ? 7
                                         : One::samples;  // an accumulation is empty, short
    data.push_back(all[i].view(samples));
    same.push_back(all[i].template view<Many>(samples));
  }
  trains_alike(one, data, many, same);
}

/// Mini-batches of `copies` times the same samples.
template <class Trainer>
struct copied_batches {
  std::vector<std::vector<float>> inputs, labels;
  std::vector<typename Trainer::batch> views;
  copied_batches(int count, int copies) {
    for (int i = 0; i < count; ++i) {
      laws::sample_batch<Trainer> const one(std::uint64_t(100 + i));
      inputs.emplace_back(), labels.emplace_back();
      for (int k = 0; k < copies; ++k) {
        inputs.back().insert(inputs.back().end(), one.inputs.begin(), one.inputs.end());
        labels.back().insert(labels.back().end(), one.labels.begin(), one.labels.end());
      }
    }
    for (int i = 0; i < count; ++i)
      views.push_back({inputs[std::size_t(i)], labels[std::size_t(i)]});
  }
};

/// Two replicas that get the same samples are one, to the bit: halves of a number are exact.
template <class Family, int Ranks>
void reads_what_one_reads() {
  using One = Of<Family, Ranks>;
  using Many = Of<Family, Ranks, Between>;
  if (Between::processes() != 2 * Ranks) return;
  One one({.seed = 3, .clip_value = 0.1});
  Many many({.seed = 3, .clip_value = 0.1});
  copied_batches<One> const data(9, 1);
  copied_batches<Many> const twice(9, 2);
  trains_alike(one, data.views, many, twice.views);
}

/// Confirmed steps of accumulations in any number of replicas against steps with a barrier in one
/// process. Mini-batches 1 and 4 have large gradients, or `bad` has a number that is not finite.
template <class Family, int Ranks>
void as_with_a_barrier(double clip_norm, int bad = -1) {
  using One = Of<OneFOneB, 1, GradientAccumulation<4>>;
  using Many = Of<Steady<Family>, Ranks, GradientAccumulation<4>, Between>;
  if (Between::processes() > 4 * Ranks) return;
  INFO(Many::plan().schedule << ", clip_norm " << clip_norm << ", bad " << bad << ", process "
                             << Between::process() << " of " << Between::processes());
  One one({.seed = 3, .clip_norm = clip_norm});
  Many many({.seed = 3, .clip_norm = clip_norm});
  std::vector<laws::sample_batch<One>> all;
  for (int i = 0; i < 7; ++i) all.emplace_back(std::uint64_t(100 + i));
  for (std::size_t i : {1, 4})
    for (float& y : all[i].labels) y *= 40;
  if (bad >= 0) all[std::size_t(bad)].inputs.back() = std::numeric_limits<float>::infinity();
  std::vector<typename One::batch> data;
  std::vector<typename Many::batch> same;
  for (std::size_t i = 0; i < all.size(); ++i) {
    int const samples = i == 2   ? 1
                        : i == 5 ? 7
                                 : One::samples;  // some accumulations are empty, or short
    data.push_back(all[i].view(samples));
    same.push_back(all[i].template view<Many>(samples));
  }
  for (int call = 0; call < 2; ++call) {
    numbers a, b;
    std::string const says =
        message_of<not_finite>([&] { one.train(data, [&](auto const& r) { a(r); }); });
    CHECK(says == message_of<not_finite>([&] { many.train(same, [&](auto const& r) { b(r); }); }));
    CHECK((says == "no error") == (bad < 0));
    if (bad < 0) CHECK((a.norms[1] > 1 && a.norms[3] < 1));
    CHECK(a == b);
    CHECK(one.steps() == many.steps());
    CHECK(processes::same_values(one, many));
    CHECK(laws::same_bits(one.step(data[0]).loss, many.step(same[0]).loss));
    CHECK(processes::same_parameters(one, many));
  }
}

}  // namespace

TEST_CASE("confirmed steps of accumulations in replicas have the bits of steps with a barrier") {
  for (double const clip : {0., 1e-3, 1.}) as_with_a_barrier<OneFOneB, 2>(clip);
  as_with_a_barrier<OneFOneB, 2>(1, 3);
}
TEST_CASE("replicas without a flush have the bits of the accumulations of one process") {
  reads_the_version_before<1>();
  reads_the_version_before<2>();
}
TEST_CASE("replicas without a flush read the weights that one reads") {
  reads_what_one_reads<PipeDream<>, 2>();
  reads_what_one_reads<PACI<>, 2>();
}
TEST_CASE("a run of replicas without a flush is resumed to the bit") {
  using Many = Of<PipeDream<>, 2, Between>;
  if (Between::processes() != 4) return;
  copied_batches<Many> const data(6, 2);
  Many plain({.seed = 3}), first({.seed = 3}), second({.seed = 4});
  auto const middle = data.views.begin() + 3;
  plain.train(data.views);
  first.train(std::vector(data.views.begin(), middle));
  std::string const path = processes::in_folder("flow-replicas");
  first.save(path);
  second.load(path);
  second.train(std::vector(middle, data.views.end()));
  CHECK(processes::same_values(plain, second));
}
TEST_CASE("all replicas find that a free step of one is not finite") {
  using Many = Of<PipeDream<>, 2, Between>;
  if (Between::processes() != 4) return;
  copied_batches<Many> data(9, 2);
  data.inputs[3].back() = std::numeric_limits<float>::infinity();  // of the second replica
  Many trainer({.seed = 3});
  numbers seen;
  CHECK(message_of<not_finite>([&] {
          trainer.train(data.views, [&](auto const& r) { seen(r); });
        }).find("step 4 rejected") == 0);
  CHECK(seen.losses.size() == 3);
}
TEST_CASE("replicas of several accumulations, or that divide updates, have a flush") {
  using Many = Of<PACI<>, 2, GradientAccumulation<4>, Between>;
  if (Between::processes() != 4) return;
  copied_batches<Many> const data(2, 1);
  Many trainer({.seed = 3});
  CHECK_THROWS_WITH(trainer.train(data.views), Catch::Contains("leave GradientAccumulation out"));
  CHECK(trainer.steps() == 0);
  trainer.step(data.views[0]);
  CHECK(trainer.steps() == 1);
  using Divided = Of<PACI<>, 2, ZeRO<1>, Between>;
  copied_batches<Divided> const twice(2, 2);
  Divided divided({.seed = 3});
  CHECK_THROWS_WITH(divided.train(twice.views), Catch::Contains("do not overlap with ZeRO<1>"));
  CHECK(divided.steps() == 0);
}
