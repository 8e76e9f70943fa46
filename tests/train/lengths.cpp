// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches with lengths: what is refused, what the results of sums and outputs are, and what a
// rejected step says.
#include "catch.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <pipe/pipe.hpp>

#include "message_of.hpp"

using namespace pp;

namespace {

struct Words : Model<Tokens<11, 16>, Embedding<6>, Linear<11>, CrossEntropy> {};
using Trainer = Pipeline<Words, PortableHost, MicroBatches<2>, MicroBatchSize<2>, AdamW, Lengths<>>;
struct Pooled : Model<Tokens<11, 16>, Embedding<6>, MeanPool, Linear<3>, CrossEntropy> {};
using Classifier = Pipeline<Pooled, PortableHost, MicroBatchSize<2>, Lengths<4>>;

template <class T>
std::string refused(T& trainer, std::vector<int> const& ids, std::vector<int> const& labels,
                    std::vector<int> const& lengths) {
  typename T::batch b{ids, labels};
  b.set_lengths(lengths);
  return message_of<data_error>([&] { trainer.step(b); });
}

}  // namespace

namespace texts {
// [trainer]
struct GPT : Model<Tokens<256, 64>, Embedding<32>, Positions,
                   Repeat<2, Residual<LayerNorm, Attention<4>>,
                          Residual<LayerNorm, Linear<128>, GELU, Linear<32>>>,
                   LayerNorm, Linear<256>, CrossEntropy> {};
using Trainer = Pipeline<GPT, Stages<2>, MicroBatches<2>, MicroBatchSize<2>, AdamW, Lengths<>>;
// [/trainer]
}  // namespace texts

TEST_CASE("texts of different lengths are given one behind the other, or padded") {
  using texts::Trainer;
  Trainer trainer, padded_trainer;
  // [ragged]
  std::vector<std::string> const texts{"To be, or not to be", "that is", "the question:"};
  std::vector<int> ids, labels, lengths;
  for (std::string const& text : texts) {
    lengths.push_back(int(text.size()) - 1);
    for (std::size_t i = 0; i + 1 < text.size(); ++i) {
      ids.push_back(static_cast<unsigned char>(text[i]));
      labels.push_back(static_cast<unsigned char>(text[i + 1]));
    }
  }
  double const loss = trainer.step(Trainer::batch{ids, labels}.set_lengths(lengths)).loss;
  // [/ragged]
  std::vector<int> padded_ids(3 * 64, -1), padded_labels(3 * 64, -1);
  for (int s = 0, from = 0; s < 3; from += lengths[std::size_t(s)], ++s)
    for (int t = 0; t < lengths[std::size_t(s)]; ++t) {
      padded_ids[std::size_t(64 * s + t)] = ids[std::size_t(from + t)];
      padded_labels[std::size_t(64 * s + t)] = labels[std::size_t(from + t)];
    }
  CHECK(loss == padded_trainer.step({padded_ids, padded_labels}).loss);
}
TEST_CASE("lengths that are out of range or do not add up are refused") {
  Trainer t;
  std::vector<int> const five(5, 1), six(6, 1);
  CHECK(refused(t, five, five, {2, 4}) == "lengths: their sum is 6, but there are 5 inputs");
  CHECK(refused(t, five, five, {17}) == "lengths: 17 at position 0 is not in [0, 16]");
  CHECK(refused(t, five, five, {6, -1}) == "lengths: -1 at position 1 is not in [0, 16]");
  CHECK(refused(t, five, five, {1, 1, 1, 1, 1}) == "lengths: expected 1 to 4 samples, got 5");
  CHECK(refused(t, five, six, {5}) == "labels: expected 5 numbers, got 6");
  CHECK(refused(t, {1, 11}, {1, 1}, {2}) == "token 11 at position 1 is not in [-1, 11)");
  CHECK(refused(t, {1, 1}, {1, 11}, {2}) == "label 11 at position 1 is not in [-1, 11)");
  CHECK(message_of<data_error>([&] { t.step({five, five}); }) ==
        "inputs: expected 1 to 4 samples of 16 numbers, got 5 numbers");
  Classifier c;
  CHECK(refused(c, five, six, {2, 3}) == "labels: expected 2 numbers, got 6");
  CHECK(t.steps() == 0);
  CHECK(refused(t, six, six, {2, 4}) == "no error");
  CHECK(refused(c, five, {1, 2}, {2, 3}) == "no error");
}
TEST_CASE("a data set with lengths is not divided into mini-batches") {
  std::vector<int> const five(5, 1), lengths{2, 3};
  Trainer::batch b{five, five};
  b.set_lengths(lengths);
  std::string const said =
      "lengths: a data set is divided by samples padded to the context, without lengths";
  CHECK(message_of<data_error>([&] { batches<Trainer> all(b); }) == said);
  Trainer t;
  std::vector<float> outputs(55);
  CHECK(message_of<data_error>([&] { predict(t, b, outputs); }) == said);
}
TEST_CASE("outputs of dense samples are of the rows that are there") {
  Trainer t;
  std::vector<int> const ids{1, 2, 3, 4, 5}, lengths{2, 3};
  Trainer::batch b{ids, {}};
  b.set_lengths(lengths);
  std::vector<float> outputs(55, 7.f), fewer(54);
  t.forward(b, outputs);
  for (float x : outputs) CHECK(x != 7.f);
  CHECK(message_of<data_error>([&] { t.forward(b, fewer); }) ==
        "outputs: expected 55 numbers, got 54");
}
TEST_CASE("a rejected step names the first layer, not what lies behind the rows that are there") {
  Trainer t;
  std::vector<int> const ids{1, 2, 3}, lengths{3};
  Trainer::batch b{ids, ids};
  b.set_lengths(lengths);
  // A full mini-batch that is not finite leaves NaNs in all rows.
  std::vector<int> const full(64, 1);
  auto all = t.parameters();
  float const kept = all[1].values[0];
  all[1].values[0] = std::numeric_limits<float>::max();
  all[0].values[6] = all[0].values[7] = std::numeric_limits<float>::max();
  t.parameters_changed();
  std::string const first = message_of<not_finite>([&] { t.step({full, full}); });
  CHECK(first.find("first appears in forward of micro-batch 0") != std::string::npos);
  all[1].values[0] = kept;
  for (float& x : all[0].values) x = .1f;
  t.parameters_changed();
  CHECK(std::isfinite(t.step(b).loss));
  long launches = 0;
  t.watch(b, [&](launch_seen const& seen) {
    ++launches;
    CHECK(seen.all_finite());
  });
  CHECK(launches > 0);
}
