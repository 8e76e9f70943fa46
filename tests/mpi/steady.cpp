// SPDX-License-Identifier: BSL-1.0
//
// Confirmed steps that overlap over processes have the bits of one stage with a barrier, whatever
// has to be taken back.
#include "mpi/alike.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <pipe/schedule/catalog/families.hpp>

#include "message_of.hpp"

using namespace pp;

namespace {

struct Net
    : Model<Input<6>, Linear<8>, GELUTanh, Linear<8>, Dropout<1, 5>, GELUTanh, Linear<8>, GELUTanh,
            Linear<8>, GELUTanh, Stash<"late">, Linear<4>,
            Losses<MSE, FurtherLoss<"kind", "late", LossWeight<1, 9>, Linear<2>, CrossEntropy>>> {};
/// A parameter in the first and the last stage, and one that no step changes.
struct TiedNet : Model<Tokens<9, 4>, Named<"table", Embedding<8>>, Residual<LayerNorm, Linear<8>>,
                       Frozen<Linear<8>>, GELUTanh, Linear<8>, Tied<"table">, CrossEntropy> {};

template <class M, class... More>
using Of =
    Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, Averaging<9, 10>, More...>;
template <class M, class Family, int N>
using Steadily = Of<M, Stages<N>, Steady<Family>, Between>;

/// The mini-batches of a model, each third one shorter.
template <class M>
struct data_of {
  using Trainer = Of<M>;
  std::vector<laws::sample_batch<Trainer>> all;
  explicit data_of(int count) {
    for (int i = 0; i < count; ++i) all.emplace_back(std::uint64_t(100 + i));
  }
  template <class Which>
  std::vector<typename Which::batch> of() const {
    std::vector<typename Which::batch> batches;
    for (auto const& one : all)
      batches.push_back(
          one.template view<Which>(Trainer::samples - long(batches.size()) % 3 / 2 * 3));
    return batches;
  }
};
/// Mini-batches 1, 2 and 6 of nine have gradients above 1, the others below.
data_of<Net> some_steep() {
  data_of<Net> data(9);
  for (std::size_t i : {1, 2, 6})
    for (float& y : data.all[i].labels) y *= 40;
  return data;
}

/// What training shows.
struct history {
  std::vector<double> losses, norms;  // the value of each loss, and their sum
  std::string error;
  template <class Trainer>
  void train(Trainer& trainer, std::vector<typename Trainer::batch> const& all) {
    error = message_of<not_finite>([&] {
      trainer.train(all, [&](step_result const& r) {
        losses.insert(losses.end(), r.losses.begin(), r.losses.end());
        losses.push_back(r.loss), norms.push_back(r.gradient_norm);
      });
    });
  }
  bool operator==(history const&) const = default;
};

/// Two calls of train() on the same mini-batches.
template <class Family, int N, class M>
void as_with_a_barrier(data_of<M> const& data, double clip_norm) {
  using Many = Steadily<M, Family, N>;
  INFO(Many::plan().schedule << ", clip_norm " << clip_norm << ", process " << Between::process()
                             << " of " << Between::processes());
  double const clip_value = clip_norm > 0 ? 0 : 0.5;
  Of<M> one({.seed = 3, .clip_value = clip_value, .clip_norm = clip_norm});
  Many many({.seed = 3, .clip_value = clip_value, .clip_norm = clip_norm});
  auto const ours = data.template of<Of<M>>();
  auto const theirs = data.template of<Many>();
  for (int call = 0; call < 2; ++call) {
    history a, b;
    a.train(one, ours);
    b.train(many, theirs);
    CHECK(a == b);
    CHECK(one.steps() == many.steps());
    CHECK(processes::same_parameters(one, many));
    one.swap_averages(), many.swap_averages();
    CHECK(processes::same_values(one, many));
    one.swap_averages(), many.swap_averages();
    CHECK(laws::same_bits(one.evaluate(ours[1]), many.evaluate(theirs[1])));
    CHECK(laws::same_bits(one.step(ours[1]).loss, many.step(theirs[1]).loss));
  }
}

}  // namespace

TEST_CASE("confirmed steps over processes have the bits of steps with a barrier") {
  if (Between::processes() > 4) return;
  auto const data = some_steep();
  // Never clipped, always, and in such turns that steps are taken back, and that some wait.
  history plain;
  Of<Net> one({.seed = 3});
  plain.train(one, data.of<Of<Net>>());
  for (std::size_t i = 0; i < plain.norms.size(); ++i)
    CHECK((plain.norms[i] > 1) == (i == 1 || i == 2 || i == 6));
  for (double const clip : {0., 1e-3, 1.}) {
    as_with_a_barrier<ZeroBubbleH2, 4>(data, clip);
    as_with_a_barrier<Interleaved<2>, 8>(data, clip);
    as_with_a_barrier<ZeroBubbleV, 8>(data, clip);
  }
}
TEST_CASE("shared parameters keep up where steps overlap over processes") {
  if (Between::processes() > 4) return;
  data_of<TiedNet> const data(7);
  history plain;
  Of<TiedNet> one({.seed = 3});
  plain.train(one, data.of<Of<TiedNet>>());
  auto const [least, most] = std::minmax_element(plain.norms.begin(), plain.norms.end());
  for (double const clip : {0., (*least + *most) / 2, *least / 2})
    as_with_a_barrier<OneFOneB, 4>(data, clip);
}
TEST_CASE("a confirmed step that is not finite is taken back in all processes") {
  if (Between::processes() > 4) return;
  for (std::size_t const bad : {0, 2, 4, 8}) {
    auto data = some_steep();
    data.all[bad].inputs[1] = std::numeric_limits<float>::infinity();
    as_with_a_barrier<ZeroBubbleH2, 4>(data, 1);
    as_with_a_barrier<ZeroBubbleV, 8>(data, 0);
  }
}
TEST_CASE("confirmed steps over processes end where the program says") {
  if (Between::processes() > 4) return;
  using Many = Steadily<Net, Interleaved<2>, 8>;
  auto const data = some_steep();
  auto const ours = data.of<Of<Net>>();
  auto const theirs = data.of<Many>();
  for (double const clip : {0., 1.}) {
    Of<Net> one({.seed = 3, .clip_norm = clip});
    Many many({.seed = 3, .clip_norm = clip});
    int seen = 0;
    long const steps = many.train(theirs, [&](step_result const&) { return ++seen < 3; });
    CHECK((steps == seen && steps > 3 && steps < 9));
    one.train(std::vector(ours.begin(), ours.begin() + steps));
    CHECK(processes::same_parameters(one, many));
    // All processes throw alike, after the steps that had begun.
    CHECK_THROWS_AS(many.train(theirs, [](step_result const&) { throw std::logic_error("x"); }),
                    std::logic_error);
    long const more = many.steps() - steps;
    one.train(std::vector(ours.begin(), ours.begin() + more));
    CHECK(processes::same_parameters(one, many));
  }
}
