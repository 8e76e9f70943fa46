// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches and data sets of models with several inputs of token ids, which have lengths of
// their own: what is refused, and which samples make a mini-batch.
#include "catch.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <pipe/pipe.hpp>

#include "message_of.hpp"

using namespace pp;

namespace {

struct Answers
    : Model<Tokens<9, 16>, Embedding<4>, Stash<"asked">, Named<"words", Tokens<7, 8>>, Embedding<4>,
            Residual<CrossAttention<1, "asked">>, Linear<7>, CrossEntropy> {};
using Trainer =
    Pipeline<Answers, PortableHost, MicroBatches<2>, MicroBatchSize<2>, AdamW, Lengths<4>>;

// [types]
struct Typed : Model<Tokens<9, 16>, Embedding<4>, Stash<"word">, Named<"type", Tokens<2, 16>>,
                     Embedding<4>, Pop<"word">, Linear<9>, CrossEntropy> {};
// [/types]

/// Padded samples: 1 to 16 ids, and 1 to 8 of the second input, all with labels.
struct padded_pairs {
  std::vector<int> ids, words, labels, lengths, answers;
  explicit padded_pairs(int samples) {
    for (int s = 0; s < samples; ++s) {
      lengths.push_back(1 + s * 7 % 16);
      answers.push_back(1 + s * 3 % 8);
      for (int t = 0; t < 16; ++t) ids.push_back(t < lengths.back() ? (s + t) % 9 : -1);
      for (int t = 0; t < 8; ++t) {
        words.push_back(t < answers.back() ? (s * t) % 7 : -1);
        labels.push_back(t < answers.back() ? (s + 2 * t) % 7 : -1);
      }
    }
  }
  Trainer::batch view() const { return Trainer::batch{ids, labels}.set<"words">(words); }
};
int length_in(std::span<int const> ids, std::size_t s, std::size_t context) {
  int n = 0;
  while (n < int(context) && ids[s * context + std::size_t(n)] >= 0) ++n;
  return n;
}
std::string refused(Trainer::batch const& b) {
  Trainer trainer;
  return message_of<data_error>([&] { trainer.step(b); });
}

}  // namespace

TEST_CASE("lengths of several inputs that cannot be are refused") {
  std::vector<int> const ids(9, 1), words(5, 1);
  auto const refusal = [&](std::vector<int> const& asked, std::vector<int> const& answered) {
    Trainer::batch b{ids, words};
    b.set<"words">(words).set_lengths(asked).set_lengths<"words">(answered);
    return refused(b);
  };
  CHECK(refusal({5, 4}, {2, 3}) == "no error");
  CHECK(refusal({5, 4}, {5}) == "lengths of input \"words\": expected 2 samples, got 1");
  CHECK(refusal({5, 4}, {2, 2}) ==
        "lengths of input \"words\": their sum is 4, but there are 5 inputs");
  CHECK(refusal({5, 4}, {-4, 9}) ==
        "lengths of input \"words\": -4 at position 0 is not in [0, 8]");
  CHECK(refusal({5, 4}, {1, 1, 1, 1, 1}) ==
        "lengths of input \"words\": expected 1 to 4 samples, got 5");
  CHECK(refusal({9}, {2, 3}) == "lengths of input \"words\": expected 1 samples, got 2");
  std::vector<int> const two{5, 4};
  Trainer::batch half{ids, words};
  half.set<"words">(words).set_lengths(two);
  CHECK(refused(half) == "input \"words\": expected 16 numbers, got 5");

  struct Aged : Model<Tokens<9, 8>, Embedding<4>, MeanPool,
                      ConcatOf<Identity, Named<"age", Input<1>>>, Linear<3>, CrossEntropy> {};
  Pipeline<Aged, PortableHost, MicroBatchSize<2>, Lengths<>> aged;
  std::vector<int> const labels(2, 1);
  std::vector<float> const age(2, 1.f);
  decltype(aged)::batch b{ids, labels};
  b.set<"age">(age).set_lengths(two);
  CHECK(aged.step(b).loss > 0);
  b.named_lengths[1] = two;
  CHECK(message_of<data_error>([&] { aged.step(b); }) ==
        "lengths of input \"age\": expected 0 samples, got 2");
}
TEST_CASE("types of words have the lengths of the words") {
  using Joined = Pipeline<Typed, PortableHost, MicroBatches<2>, MicroBatchSize<2>, Lengths<4>>;
  Joined trainer;
  std::vector<int> const ids(9, 1), eight(8, 1), lengths{5, 4}, other{4, 5};
  auto const refusal = [&](std::vector<int> const& types, std::vector<int> const& labels) {
    Joined::batch b{ids, labels};
    b.set<"type">(types).set_lengths(lengths);
    return message_of<data_error>([&] { trainer.step(b); });
  };
  CHECK(refusal(ids, ids) == "no error");
  CHECK(refusal(eight, ids) == "input \"type\": expected 9 numbers, got 8");
  CHECK(refusal(ids, eight) == "labels: expected 9 numbers, got 8");
  Joined::batch b{ids, ids};
  b.set<"type">(ids).set_lengths(lengths);
  b.named_lengths[1] = other;
  CHECK(message_of<data_error>([&] { trainer.step(b); }) ==
        "lengths of input \"type\": expected 0 samples, got 2");
  // A padded sample ends where neither words nor types go on.
  std::vector<int> words(16, -1), types(16, -1), labels(16, -1), all;
  words[2] = types[6] = labels[1] = 1;
  Joined::batch padded{words, labels};
  padded.set<"type">(types);
  CHECK(detail::lengths_of<0>(padded, 1) == std::vector{7});
  int longest = 0;
  CHECK(detail::sums_of_lengths(padded, 1, longest) == std::vector{7});
  CHECK(longest == 16);
  Joined::batch set{ids, ids};
  set.set<"type">(ids).set_lengths(lengths);
  for (auto const& part : batches<Joined>(set, {.packed = true}))
    all.insert(all.end(), part.named_ids[1].begin(), part.named_ids[1].end());
  CHECK(all == ids);
}
TEST_CASE("one input of several may have lengths, and another be padded") {
  padded_pairs const data(4);
  std::vector<int> dense;
  for (std::size_t s = 0; s < 4; ++s)
    dense.insert(dense.end(), data.ids.begin() + long(16 * s),
                 data.ids.begin() + long(16 * s) + data.lengths[s]);
  Trainer padded, ragged;
  Trainer::batch b{dense, data.labels};
  b.set<"words">(data.words).set_lengths(data.lengths);
  CHECK(padded.step(data.view()).loss == ragged.step(b).loss);
}
TEST_CASE("mini-batches by length have samples of like sums of lengths") {
  padded_pairs const data(101);
  std::vector<int> sums;
  for (auto const& b : batches<Trainer>(data.view(), {.by_length = true}))
    for (std::size_t s = 0; s < b.inputs.size() / 16; ++s)
      sums.push_back(length_in(b.inputs, s, 16) + length_in(b.named_ids[1], s, 8));
  CHECK(sums.size() == 101);
  CHECK(std::ranges::is_sorted(sums));
}
TEST_CASE("micro-batches by tokens have room for the rows of each input") {
  padded_pairs const data(300);
  // Each takes samples in their order until the next one has no room in one of the inputs.
  using sample = std::pair<int, int>;
  std::vector<std::vector<sample>> expected;
  int filled_by_words = 0, filled_by_ids = 0;
  for (std::size_t s = 0, ids = 32, words = 16; s < 300; ++s) {
    sample const next{length_in(data.ids, s, 16), length_in(data.words, s, 8)};
    std::size_t const more = std::size_t(next.first + 3) / 4 * 4,
                      answer = std::size_t(next.second + 3) / 4 * 4;
    bool const by_ids = ids + more > 32, by_words = words + answer > 16;
    if (by_ids || by_words) {
      expected.emplace_back();
      ids = words = 0;
      filled_by_ids += by_ids && !by_words;
      filled_by_words += by_words && !by_ids;
    }
    ids += more, words += answer;
    expected.back().push_back(next);
  }
  std::size_t trained = 0, mini_batches = 0;
  Trainer trainer;
  auto from = expected.begin();
  for (auto const& b : batches<Trainer>(data.view(), {.by_tokens = true})) {
    std::size_t s = 0;
    std::vector<std::vector<sample>> found;  // the shortest ones are at both ends
    for (int const count : b.micro_batches) {
      found.emplace_back();
      for (int k = 0; k < count; ++k, ++s)
        found.back().push_back({length_in(b.inputs, s, 16), length_in(b.named_ids[1], s, 8)});
    }
    std::vector<std::vector<sample>> here(from, from + long(found.size()));
    from += long(found.size());
    std::ranges::sort(here);
    std::ranges::sort(found);
    CHECK(found == here);
    trained += s;
    ++mini_batches;
    trainer.step(b);
  }
  CHECK(trained == 300);
  CHECK(mini_batches < 75);  // which samples padded to the contexts make
  CHECK(filled_by_ids > 5);
  CHECK(filled_by_words > 5);
}
TEST_CASE("micro-batches by tokens of two inputs have the bits of padded ones") {
  constexpr std::size_t room = 16;
  using Padded = Pipeline<Answers, PortableHost, MicroBatches<2>, MicroBatchSize<room>, AdamW>;
  padded_pairs const data(100);
  Padded padded({.seed = 2});
  Trainer dense({.seed = 2});
  for (auto const& b : batches<Trainer>(data.view(), {.shuffle = true, .by_tokens = true})) {
    std::vector<int> ids, words, labels;  // with samples of padding behind each micro-batch's own
    std::size_t s = 0;
    for (int const count : b.micro_batches) {
      auto const take = [&](std::span<int const> from, std::size_t context, std::vector<int>& to) {
        auto const own = from.subspan(s * context, std::size_t(count) * context);
        to.insert(to.end(), own.begin(), own.end());
        to.resize(to.size() + (room - std::size_t(count)) * context, -1);
      };
      take(b.inputs, 16, ids);
      take(b.named_ids[1], 8, words);
      take(b.labels, 8, labels);
      s += std::size_t(count);
    }
    step_result const x = padded.step(Padded::batch{ids, labels}.set<"words">(words)),
                      y = dense.step(b);
    CHECK(x.loss == y.loss);
    CHECK(x.gradient_norm == y.gradient_norm);
  }
  CHECK(padded.steps() > 5);
  auto const p = padded.parameters(), q = dense.parameters();
  for (std::size_t i = 0; i < p.size(); ++i) CHECK(std::ranges::equal(p[i].values, q[i].values));
}
TEST_CASE("a micro-batch has no more rows than are planned, of any input") {
  padded_pairs data(4);
  Trainer::batch b = data.view();
  std::vector<int> const counts{3, 1};
  for (int s = 0; s < 3; ++s)
    for (std::size_t t = 0; t < 8; ++t) data.words[std::size_t(s) * 8 + t] = 1;
  for (std::size_t i = 0; i < data.ids.size(); ++i)
    if (i % 16 > 3) data.ids[i] = -1;
  b.set_micro_batches(counts);
  CHECK(refused(b) ==
        "micro_batches: the samples of micro-batch 0 have more rows of input \"words\" than 16, "
        "MicroBatchSize times the context");
}
