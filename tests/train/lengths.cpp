// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches with lengths: what is refused, what the results of sums and outputs are, and what a
// rejected step says.
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <pipe/data/owned_batch.hpp>
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
TEST_CASE("numbers of samples that do not fit into micro-batches are refused") {
  Trainer t;
  std::vector<int> const ids(40, 1), lengths{16, 8, 1, 15};
  auto const refused_counts = [&](std::vector<int> const& counts) {
    Trainer::batch b{ids, ids};
    b.set_lengths(lengths).set_micro_batches(counts);
    return message_of<data_error>([&] { t.step(b); });
  };
  CHECK(refused_counts({2, 1}) == "micro_batches: their sum is 3, but there are 4 samples");
  CHECK(refused_counts({2, 3}) == "micro_batches: 3 samples in micro-batch 1 are not in [1, 2]");
  CHECK(refused_counts({0, 4}) == "micro_batches: 0 samples in micro-batch 0 are not in [1, 4]");
  CHECK(refused_counts({1, 1, 2}) == "micro_batches: expected at most 2 numbers, got 3");
  CHECK(refused_counts({3, 1}) == "no error");  // 16, 8 and 8 rows
  CHECK(refused_counts({4}) ==
        "micro_batches: the samples of micro-batch 0 have more rows than 32, MicroBatchSize times "
        "the context");
  Classifier c;
  std::vector<int> const two{1, 2}, four(4, 2), one{1, 1};
  Classifier::batch b{four, two};
  b.set_lengths(two).set_micro_batches(one);
  CHECK(message_of<data_error>([&] { c.step(b); }) ==
        "lengths: their sum is 3, but there are 4 inputs");
  std::vector<int> const three(3, 2);
  Classifier::batch d{three, two};
  d.set_lengths(two).set_micro_batches(one);
  CHECK(message_of<data_error>([&] { c.step(d); }) ==
        "micro_batches: this model makes one row of each sample, so each micro-batch has "
        "MicroBatchSize samples");
}
TEST_CASE("a data set with lengths has lists of these lengths, and no micro-batches of its own") {
  std::vector<int> const five(5, 1), four(4, 1), lengths{2, 3}, counts{2};
  auto const refused_data = [](Trainer::batch const& b) {
    return message_of<data_error>([&] { batches<Trainer> all(b); });
  };
  CHECK(refused_data(Trainer::batch{five, five}.set_lengths(lengths)) == "no error");
  CHECK(refused_data(Trainer::batch{five, four}.set_lengths(lengths)) ==
        "labels: expected 5 numbers for 2 samples, got 4");
  CHECK(refused_data(Trainer::batch{four, four}.set_lengths(lengths)) ==
        "lengths: their sum is 5, but there are 4 inputs");
  CHECK(refused_data(Trainer::batch{five, five}.set_lengths(lengths).set_micro_batches(counts)) ==
        "micro_batches: a data set is divided into micro-batches by batches");
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

namespace {

/// A data set of `count` padded samples, whose first id is the sample's number modulo 11, and the
/// mini-batches of an epoch as lists of the samples' lengths.
struct padded_texts {
  std::vector<int> ids, labels, lengths;
  explicit padded_texts(int count) {
    for (int s = 0; s < count; ++s) {
      int const n = 1 + (s * s + 7 * s) % 16;
      lengths.push_back(n);
      for (int t = 0; t < 16; ++t) {
        ids.push_back(t < n ? (s + t) % 11 : -1);
        labels.push_back(t + 1 < n ? (s + t + 1) % 11 : -1);
      }
    }
  }
  Trainer::batch view() const { return {ids, labels}; }
};
/// The ids of an epoch's mini-batches, as sorted samples or in their order.
std::vector<std::vector<int>> samples_of(batches<Trainer>&& epoch) {
  std::vector<std::vector<int>> all;
  for (auto const& b : epoch) all.emplace_back(b.inputs.begin(), b.inputs.end());
  return all;
}
int length_in(std::vector<int> const& batch, std::size_t sample) {
  int n = 0;
  for (std::size_t t = 0; t < 16; ++t) n += batch[16 * sample + t] >= 0;
  return n;
}

}  // namespace

TEST_CASE("mini-batches by length have every sample once, sorted within 64 mini-batches") {
  padded_texts const data(700);  // windows of 256 samples
  auto const epoch = [&](std::uint64_t seed, long position = 0) {
    return samples_of(batches<Trainer>(
        data.view(), {.shuffle = true, .seed = seed, .position = position, .by_length = true}));
  };
  auto const one = epoch(1), two = epoch(2), later = epoch(1, 100), next = epoch(1, 175);
  REQUIRE(one.size() == 175);
  int apart = 0;
  std::vector<int> found(17), expected(17);
  for (int n : data.lengths) ++expected[std::size_t(n)];
  for (auto const& b : one)
    for (std::size_t s = 0; s < 4; ++s) {
      ++found[std::size_t(length_in(b, s))];
      apart += length_in(b, s) - length_in(b, 0);
      CHECK(length_in(b, s) >= length_in(b, 0));
    }
  CHECK(found == expected);
  CHECK(apart < 3 * 3 * 16 * 2);  // each window goes once through 16 lengths
  std::vector<std::vector<int>> samples[2];
  for (auto const& [all, to] : {std::pair{&one, 0}, std::pair{&two, 1}}) {
    for (auto const& b : *all)
      for (std::size_t s = 0; s < 4; ++s)
        samples[to].emplace_back(b.begin() + long(16 * s), b.begin() + long(16 * (s + 1)));
    std::sort(samples[to].begin(), samples[to].end());
  }
  CHECK(samples[0] == samples[1]);
  CHECK(one != two);
  CHECK(one != next);
  CHECK(std::vector(one.begin() + 100, one.end()) == later);
  auto const rising = samples_of(batches<Trainer>(data.view(), {.by_length = true}));
  for (std::size_t b = 1; b < 64; ++b)
    CHECK(length_in(rising[b], 0) >= length_in(rising[b - 1], 3));
}
TEST_CASE("an epoch by length is trained") {
  padded_texts const texts(20);
  Trainer::batch const data = texts.view();
  Trainer trainer;
  // [by_length]
  for (auto const& batch : batches<Trainer>(data, {.shuffle = true, .seed = 1, .by_length = true}))
    trainer.step(batch);
  // [/by_length]
  CHECK(trainer.steps() == 5);
}
TEST_CASE("mini-batches by length end with the one that is not full") {
  padded_texts const data(263);
  auto const all = samples_of(batches<Trainer>(data.view(), {.shuffle = true, .by_length = true}));
  REQUIRE(all.size() == 66);
  for (std::size_t b = 0; b < all.size(); ++b) CHECK(all[b].size() == (b < 65 ? 64 : 48));
  CHECK(message_of<data_error>([&] {
          batches<Trainer> epoch(data.view(), {.sample_position = 5, .by_length = true});
        }) ==
        "batches: sample_position: no mini-batch of epoch 0 begins at sample 5: by_length, "
        "by_tokens and packed go on only with the data set, the settings and the sizes of the run "
        "that was left");
}
TEST_CASE("mini-batches by tokens have every sample once, and fill their micro-batches") {
  padded_texts const data(500);
  constexpr int room = 32;  // rows of a micro-batch
  auto const epoch = [&](long first) {
    std::vector<std::vector<int>> all;
    std::vector<std::vector<int>> counts;
    batches<Trainer> by_tokens(data.view(), {.shuffle = true, .first = first, .by_tokens = true});
    for (auto const& b : by_tokens) {
      all.emplace_back(b.inputs.begin(), b.inputs.end());
      counts.emplace_back(b.micro_batches.begin(), b.micro_batches.end());
    }
    return std::pair{all, counts};
  };
  auto const [all, counts] = epoch(0);
  CHECK(all.size() < 125);  // which 500 samples padded to the context make
  std::vector<int> found(17), expected(17);
  for (int n : data.lengths) ++expected[std::size_t(n)];
  for (std::size_t b = 0; b < all.size(); ++b) {
    std::size_t s = 0;
    int of_both = 0;
    if (b + 1 < all.size()) CHECK(counts[b].size() == 2);
    for (int count : counts[b]) {
      int rows = 0;
      for (int k = 0; k < count; ++k, ++s) {
        int const n = length_in(all[b], s);
        ++found[std::size_t(n)];
        rows += n > 8 ? 16 : 8;
      }
      CHECK(rows <= room);
      of_both += rows;
    }
    if (counts[b].size() == 2) CHECK(of_both > room);  // one had no room for all
    CHECK(16 * s == all[b].size());
  }
  CHECK(found == expected);
  auto const [later, later_counts] = epoch(10);
  CHECK(std::vector(all.begin() + 10, all.end()) == later);
  CHECK(std::vector(counts.begin() + 10, counts.end()) == later_counts);

  Trainer trainer;
  Trainer::batch const texts = data.view();
  // [by_tokens]
  for (auto const& batch : batches<Trainer>(texts, {.shuffle = true, .seed = 1, .by_tokens = true}))
    trainer.step(batch);
  // [/by_tokens]
  CHECK(trainer.steps() < 125);
}
TEST_CASE("mini-batches by tokens refuse what has no meaning for them") {
  padded_texts const data(40);
  auto const refused_settings = [&](detail::batch_settings const& s) {
    return message_of<data_error>([&] { batches<Trainer> epoch(data.view(), s); });
  };
  std::string const said =
      "batches: by_tokens: mini-batches have different numbers of samples, so position and "
      "another composition do not go with it: resume by sample_position";
  CHECK(refused_settings({.position = 1, .by_tokens = true}) == said);
  CHECK(refused_settings({.by_length = true, .by_tokens = true}) == said);
  CHECK(refused_settings({.samples = 5, .by_tokens = true}) ==
        "batches: samples: expected a multiple of MicroBatchSize, 2, with by_tokens, got 5");
  CHECK(refused_settings({.first = 9, .by_tokens = true}) ==
        "batches: first: mini-batch 9 is not in [0, 8]");
  using Padded = Pipeline<Words, PortableHost, MicroBatches<2>, MicroBatchSize<2>>;
  CHECK(message_of<data_error>(
            [&] { batches<Padded> epoch({data.ids, data.labels}, {.by_tokens = true}); }) ==
        "batches: by_tokens: expected a Pipeline with Lengths whose model has an output for "
        "each position");
  batches<Trainer> epoch(data.view(), {.by_tokens = true});
  CHECK(message_of<data_error>([&] { epoch.position(); }) ==
        "batches: position() counts mini-batches of one size, and those by tokens and packed have "
        "several: use sample_position()");
}
TEST_CASE("larger mini-batches by tokens have the micro-batches of several") {
  padded_texts const data(60);
  for (bool const packed : {false, true}) {
    detail::batch_settings s{.shuffle = true, .seed = 4, .by_tokens = !packed, .packed = packed};
    std::vector<int> ids, counts, larger_ids, larger_counts;
    auto const add = [](auto const& b, std::vector<int>& to_ids, std::vector<int>& to_counts) {
      to_ids.insert(to_ids.end(), b.inputs.begin(), b.inputs.end());
      to_counts.insert(to_counts.end(), b.micro_batches.begin(), b.micro_batches.end());
    };
    batches<Trainer> epoch(data.view(), s);
    for (auto const& b : epoch) add(b, ids, counts);
    s.samples = 3 * Trainer::samples;  // of three replicas
    batches<Trainer> larger(data.view(), s);
    for (auto const& b : larger) add(b, larger_ids, larger_counts);
    CHECK(larger.size() == (epoch.size() + 2) / 3);
    CHECK(larger_ids == ids);
    CHECK(larger_counts == counts);
  }
}
TEST_CASE("a mini-batch that is copied keeps the numbers of samples of its micro-batches") {
  padded_texts const data(3);
  std::vector<int> const counts{2, 1};
  Trainer::batch b = data.view();
  b.set_micro_batches(counts);
  owned_batch<Trainer> copy;
  copy.assign(b);
  CHECK(std::ranges::equal(copy.view().micro_batches, counts));
  copy.resize(2);
  CHECK(copy.view().micro_batches.empty());
}
TEST_CASE("a mini-batch that drop_last leaves out has samples of any length") {
  padded_texts const data(6);
  int const longest = *std::ranges::max_element(data.lengths);
  int trained = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (auto const& b : samples_of(batches<Trainer>(
             data.view(), {.shuffle = true, .seed = seed, .drop_last = true, .by_length = true})))
      trained += length_in(b, 3) == longest;
  CHECK(trained > 0);
  // Two micro-batches of two rows of blocks each: all four are full.
  std::vector<int> const ids(4 * 16, 1);
  CHECK(batches<Trainer>({ids, ids}, {.drop_last = true, .by_tokens = true}).size() == 1);
  CHECK(batches<Trainer>({ids, ids}, {.by_tokens = true}).size() == 1);
}
TEST_CASE("labels of other positions than the first input's say nothing of its lengths") {
  struct Answers
      : Model<Tokens<9, 6>, Embedding<4>, Stash<"asked">, Named<"words", Tokens<7, 3>>,
              Embedding<4>, Residual<CrossAttention<1, "asked">>, Linear<7>, CrossEntropy> {};
  using Answerer = Pipeline<Answers, PortableHost, MicroBatches<4>>;
  std::vector<int> ids(4 * 6, -1), labels(4 * 3, 1), order;
  for (std::size_t s = 0, lengths[] = {6, 1, 3, 2}; s < 4; ++s)
    std::fill_n(ids.begin() + long(6 * s), lengths[s], int(s));
  batches<Answerer> epoch(Answerer::batch{ids, labels}.set<"words">(labels), {.by_length = true});
  for (auto const& b : epoch)
    for (std::size_t s = 0; s < 4; ++s) order.push_back(b.inputs[6 * s]);
  CHECK(order == std::vector{1, 2, 0, 3});
}
TEST_CASE("lengths without the option are refused") {
  using Padded = Pipeline<Words, PortableHost, MicroBatches<2>, MicroBatchSize<2>>;
  Padded t;
  std::vector<int> const ids(16, 1), lengths{10, 6};
  Padded::batch b{ids, ids};
  b.lengths = lengths;
  CHECK(message_of<data_error>([&] { t.step(b); }) ==
        "lengths, micro_batches: they need the option Lengths");
}
