// SPDX-License-Identifier: BSL-1.0
//
// Data sets whose samples lie one behind the other: mini-batches, predictions and losses are those
// of the same samples padded to the context.
#include "catch.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include <pipe/data/owned_batch.hpp>
#include <pipe/pipe.hpp>
#include <pipe/train/batches_ahead.hpp>

#include "message_of.hpp"

using namespace pp;

namespace {

struct Words : Model<Tokens<11, 16>, Embedding<8>, Positions, Residual<LayerNorm, Attention<2>>,
                     Linear<11>, CrossEntropy> {};
struct Pooled : Model<Tokens<11, 16>, Embedding<8>, Residual<LayerNorm, Attention<2>>, MeanPool,
                      Linear<3>, CrossEntropy> {};
struct Answers
    : Model<Tokens<11, 16>, Embedding<8>, Stash<"asked">, Named<"words", Tokens<7, 8>>,
            Embedding<8>, Residual<CrossAttention<2, "asked">>, Linear<7>, CrossEntropy> {};
template <class M>
using Padded = Pipeline<M, PortableHost, MicroBatches<2>, MicroBatchSize<2>, Stages<2>>;
template <class M>
using Ragged = Pipeline<M, PortableHost, MicroBatches<2>, MicroBatchSize<2>, Stages<2>, Lengths<>>;

/// Texts of 1 to `context` ids.
struct texts_of {
  std::vector<int> padded, dense, lengths;
  texts_of(int samples, int context, int step, int vocabulary) {
    for (int s = 0; s < samples; ++s) {
      lengths.push_back(1 + s * step % context);
      for (int t = 0; t < context; ++t) {
        int const id = (s + s * t) % vocabulary;
        padded.push_back(t < lengths.back() ? id : -1);
        if (t < lengths.back()) dense.push_back(id);
      }
    }
  }
};
/// The rows that are there among the outputs of padded samples.
std::vector<float> rows_of(std::vector<float> const& outputs, texts_of const& of, int context,
                           int columns) {
  std::vector<float> rows;
  for (std::size_t s = 0; s < of.lengths.size(); ++s) {
    auto const from = outputs.begin() + long(s) * context * columns;
    rows.insert(rows.end(), from, from + of.lengths[s] * columns);
  }
  return rows;
}
bool same_bits(std::vector<float> const& a, std::vector<float> const& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

constexpr int many = 23;
texts_of const ids(many, 16, 7, 11), words(many, 8, 3, 7);

}  // namespace

TEST_CASE("predictions of samples of several lengths are those of padded samples") {
  Padded<Words> one({.seed = 3});
  Ragged<Words> several({.seed = 3});
  std::vector<float> const whole = predict(one, ids.padded), rows = rows_of(whole, ids, 16, 11);
  // [predict]
  Ragged<Words>::batch texts{ids.dense, {}};
  std::vector<float> const found = predict(several, texts.set_lengths(ids.lengths));
  // [/predict]
  CHECK(same_bits(found, rows));
  std::vector<float> const zeros = predict(several, ids.padded);
  CHECK(zeros.size() == whole.size());
  CHECK(same_bits(rows_of(zeros, ids, 16, 11), rows));
  std::vector<float> forward(std::size_t(ids.lengths[0] + ids.lengths[1]) * 11);
  several.forward(
      Ragged<Words>::batch{std::span(ids.dense).first(forward.size() / 11), {}}.set_lengths(
          std::span(ids.lengths).first(2)),
      forward);
  CHECK(std::equal(forward.begin(), forward.end(), found.begin()));
  std::vector<float> wrong(found.size() + 11);
  CHECK(message_of<data_error>([&] { predict(several, texts, wrong); }) ==
        "outputs: expected " + std::to_string(found.size()) + " numbers, got " +
            std::to_string(wrong.size()));
}
TEST_CASE("predictions of one row for each sample are in the order of the samples") {
  Padded<Pooled> one({.seed = 3});
  Ragged<Pooled> several({.seed = 3});
  std::vector<float> const whole = predict(one, ids.padded);
  CHECK(same_bits(predict(several, ids.padded), whole));
  CHECK(same_bits(predict(several, Ragged<Pooled>::batch{ids.dense, {}}.set_lengths(ids.lengths)),
                  whole));
}
TEST_CASE("predictions by two inputs of several lengths are those of padded samples") {
  Padded<Answers> one({.seed = 3});
  Ragged<Answers> several({.seed = 3});
  Padded<Answers>::batch padded{ids.padded, {}};
  std::vector<float> const whole = predict(one, padded.set<"words">(words.padded));
  Ragged<Answers>::batch b{ids.dense, {}};
  b.set<"words">(words.dense).set_lengths(ids.lengths).set_lengths<"words">(words.lengths);
  CHECK(same_bits(predict(several, b), rows_of(whole, words, 8, 7)));
  Ragged<Answers>::batch half{ids.dense, {}};
  half.set<"words">(words.padded).set_lengths(ids.lengths);
  std::vector<float> const found = predict(several, half);
  CHECK(found.size() == whole.size());
  CHECK(same_bits(rows_of(found, words, 8, 7), rows_of(whole, words, 8, 7)));
}
TEST_CASE("the loss of a data set does not depend on how its samples lie") {
  Padded<Words> one({.seed = 3});
  Ragged<Words> several({.seed = 3});
  double const padded = evaluate_all(several, {ids.padded, ids.padded}),
               dense = evaluate_all(
                   several, Ragged<Words>::batch{ids.dense, ids.dense}.set_lengths(ids.lengths));
  CHECK(padded == dense);
  CHECK(padded == Approx(evaluate_all(one, {ids.padded, ids.padded})).epsilon(1e-6));
}
TEST_CASE("mini-batches of a data set whose samples lie one behind the other") {
  using Trainer = Ragged<Answers>;
  std::vector<int> const labels = words.dense;
  // [inputs]
  Trainer::batch data{ids.dense, labels};
  data.set<"words">(words.dense).set_lengths(ids.lengths).set_lengths<"words">(words.lengths);
  // [/inputs]
  Trainer::batch whole{ids.padded, words.padded};
  whole.set<"words">(words.padded);
  Trainer a({.seed = 3}), b({.seed = 3});
  for (detail::batch_settings const& how :
       {detail::batch_settings{}, detail::batch_settings{.shuffle = true, .epoch = 4},
        detail::batch_settings{.shuffle = true, .by_length = true},
        detail::batch_settings{.shuffle = true, .by_tokens = true}}) {
    batches<Trainer> padded(whole, how), dense(data, how);
    CHECK(padded.size() == dense.size());
    auto other = dense.begin();
    std::size_t samples = 0;
    for (auto const& of : padded) {
      auto const& ragged = *other;
      samples += ragged.lengths.size();
      CHECK(ragged.lengths.size() == ragged.named_lengths[1].size());
      CHECK(std::ranges::equal(of.micro_batches, ragged.micro_batches));
      CHECK(a.step(of).loss == b.step(ragged).loss);
      ++other;
    }
    CHECK(samples == std::size_t(many));
  }
  batches<Trainer> epoch(data, {.shuffle = true, .seed = 7});
  batches<Trainer> again(data, {.shuffle = true, .seed = 7});
  auto next = again.begin();
  for (auto const& of : batches_ahead<Trainer>(epoch)) {
    CHECK(std::ranges::equal(of.inputs, (*next).inputs));
    CHECK(std::ranges::equal(of.lengths, (*next).lengths));
    CHECK(std::ranges::equal(of.named_lengths[1], (*next).named_lengths[1]));
    ++next;
  }
}
TEST_CASE("data sets with lengths that cannot be are refused") {
  using Trainer = Ragged<Answers>;
  auto const refused = [](Trainer::batch const& b) {
    return message_of<data_error>([&] { batches<Trainer> epoch(b); });
  };
  std::vector<int> few(words.lengths.begin(), words.lengths.end() - 1), wrong = ids.lengths;
  Trainer::batch data{ids.dense, words.dense};
  data.set<"words">(words.dense).set_lengths(ids.lengths).set_lengths<"words">(few);
  CHECK(refused(data) == "lengths of input \"words\": expected 23 samples, got 22");
  data.set_lengths<"words">(words.lengths);
  wrong[4] = 17;
  data.set_lengths(wrong);
  CHECK(refused(data) == "lengths: 17 at position 4 is not in [0, 16]");
  wrong[4] = ids.lengths[4] - 1;
  data.set_lengths(wrong);
  CHECK(refused(data) == "lengths: their sum is " + std::to_string(ids.dense.size() - 1) +
                             ", but there are " + std::to_string(ids.dense.size()) + " inputs");
  data.set_lengths(ids.lengths);
  data.set_micro_batches(few);
  CHECK(refused(data) == "micro_batches: a data set is divided into micro-batches by batches");
  Padded<Words>::batch without{ids.dense, ids.dense};
  without.lengths = ids.lengths;
  CHECK(message_of<data_error>([&] { batches<Padded<Words>> epoch(without); }) ==
        "lengths, micro_batches: they need the option Lengths");
}
TEST_CASE("a mini-batch that is copied keeps its lengths") {
  using Trainer = Ragged<Answers>;
  Trainer::batch b{ids.dense, words.dense};
  b.set_lengths(ids.lengths).set_lengths<"words">(words.lengths);
  owned_batch<Trainer> copy;
  copy.assign(b);
  CHECK(std::ranges::equal(copy.view().lengths, ids.lengths));
  CHECK(std::ranges::equal(copy.view().named_lengths[1], words.lengths));
  copy.resize(2);
  CHECK(copy.view().lengths.empty());
  CHECK(copy.view().named_lengths[1].empty());
}
