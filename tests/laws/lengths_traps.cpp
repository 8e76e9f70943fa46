// SPDX-License-Identifier: BSL-1.0
//
// Lengths: faults that other systems had with samples of several lengths, by the numbers of their
// reports. Not here, as they need several processes or a GPU: shapes that processes exchange
// (Megatron-LM 622 and 5100), graphs with a fixed number of segments (Megatron-LM 3869; here the
// host's lists), positions of ranks that divide a sample (Megatron-LM 5243).
#include "catch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include <pipe/data/token_documents.hpp>
#include <pipe/pipe.hpp>

#include "poisoned.hpp"

using namespace pp;

namespace {

constexpr int words = 17, context = 16;

struct GPT : Model<Tokens<words, context>, Embedding<8>, Positions,
                   Repeat<3, Residual<LayerNorm, Attention<2, RoPE<100>>>>, LayerNorm,
                   Linear<words>, CrossEntropy> {};
template <class... Options>
using trainer_of = Pipeline<GPT, PortableHost, MicroBatchSize<2>, Lengths<4, 4>, Options...>;
using One = trainer_of<MicroBatches<4>>;
using Four = trainer_of<MicroBatches<4>, Stages<4>, OneFOneB>;
using Threads = trainer_of<MicroBatches<4>, HostThreads<2>>;
using Accumulated = trainer_of<MicroBatches<2>, GradientAccumulation<2>>;
using Replicas = trainer_of<MicroBatches<4>, StageReplicas<1, 2>>;

/// Documents of these lengths, each label the next token.
struct documents {
  std::vector<int> ids, labels, lengths, counts;
  explicit documents(std::vector<int> of, std::vector<int> micro_batches = {}, unsigned seed = 1)
      : lengths(std::move(of)), counts(std::move(micro_batches)) {
    std::mt19937 random(seed);
    for (int const n : lengths) {
      std::size_t const first = ids.size();
      for (int t = 0; t < n; ++t) ids.push_back(int(random() % words));
      for (int t = 1; t < n; ++t) labels.push_back(ids[first + std::size_t(t)]);
      if (n > 0) labels.push_back(-1);
    }
  }
  template <class Trainer>
  typename Trainer::batch view() const {
    typename Trainer::batch b{ids, labels};
    b.set_lengths(lengths).set_micro_batches(counts);
    return b;
  }
};

/// All gradients of a mini-batch, one behind the other.
template <class Trainer>
std::vector<float> gradients_of(Trainer& trainer, documents const& d) {
  poison(trainer);
  trainer.gradients(d.view<Trainer>());
  std::vector<float> all;
  for (auto const& p : trainer.parameters())
    all.insert(all.end(), p.gradients.begin(), p.gradients.end());
  return all;
}
/// The outputs of a mini-batch's positions.
template <class Trainer>
std::vector<float> outputs_of(Trainer& trainer, documents const& d) {
  std::vector<float> all(d.ids.size() * words);
  poison(trainer);
  trainer.forward(d.view<Trainer>(), all);
  return all;
}
double distance(std::vector<float> const& a, std::vector<float> const& b) {
  double norm = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    norm += double(a[i]) * a[i], apart += double(a[i] - b[i]) * double(a[i] - b[i]);
  return std::sqrt(apart / norm);
}
bool all_finite(std::vector<float> const& values) {
  return std::ranges::all_of(values, [](float x) { return std::isfinite(x); });
}

/// Micro-batches with 3, 28, 3 and 26 labels.
documents uneven() { return documents({4, 16, 14, 4, 16, 12}, {1, 2, 1, 2}); }

}  // namespace

TEST_CASE("accumulations are no mean of means: transformers 34191, torchtune 1875", "[laws]") {
  documents const d = uneven();
  One one;
  Accumulated sum;
  CHECK(distance(gradients_of(one, d), gradients_of(sum, d)) < 1e-6);
  // The mean over all labels, of each document by itself.
  double total = 0, labels = 0;
  std::size_t at = 0;
  for (int const n : d.lengths) {
    std::span const ids(d.ids.data() + at, std::size_t(n)),
        targets(d.labels.data() + at, std::size_t(n)), length(&n, 1);
    total += one.evaluate(One::batch{ids, targets}.set_lengths(length)) * (n - 1);
    labels += n - 1, at += std::size_t(n);
  }
  CHECK(sum.evaluate(d.view<Accumulated>()) == Approx(total / labels));
  CHECK(sum.gradients(d.view<Accumulated>()).loss == Approx(total / labels));
}
TEST_CASE("no divisor is that of a rank: transformers 34242, torchtitan 2206", "[laws]") {
  documents const d = uneven();
  One one;
  Replicas replicas;  // each has every other micro-batch, with 6 and with 54 labels
  CHECK(gradients_of(one, d) == gradients_of(replicas, d));
  CHECK(one.step(d.view<One>()).loss == replicas.step(d.view<Replicas>()).loss);
}
TEST_CASE("a query has a key, its own: flash-attention 443", "[laws]") {
  One one;
  documents const d({1, 0, 7, 1, 0, 0, 2}, {2, 3, 2}), without({1, 7, 1, 2}, {1, 2, 1});
  std::vector<float> const found = gradients_of(one, d);
  CHECK(all_finite(found));
  CHECK(all_finite(outputs_of(one, d)));
  CHECK(found == gradients_of(one, without));
}
TEST_CASE("rows behind the segments have no gradient: pytorch 186786, flash-attention 2324",
          "[laws]") {
  // poison() has filled the rows behind with NaNs.
  One one, fresh;
  documents const d({5, 3, 2}, {2, 1});
  gradients_of(one, documents(std::vector<int>(8, context)));
  std::vector<float> const found = gradients_of(one, d);
  CHECK(all_finite(found));
  fresh.gradients(d.view<One>());
  std::vector<float> expected;
  for (auto const& p : fresh.parameters())
    expected.insert(expected.end(), p.gradients.begin(), p.gradients.end());
  CHECK(found == expected);
}
TEST_CASE("no segment is empty: flash-attention 2562 and 1155", "[laws]") {
  One one;
  documents const d({3, 0, 0, 0, 5}, {1, 3, 1}), without({3, 5}, {1, 1});
  CHECK(gradients_of(one, d) == gradients_of(one, without));
  CHECK(outputs_of(one, d) == outputs_of(one, without));
  // Each sample without a token takes a block, of which a micro-batch has room for eight.
  CHECK(all_finite(gradients_of(one, documents({0, 0, 0, 0, 0, 0, 0, 0, 2}, {8, 1}))));
}
TEST_CASE("gradients of queries are added in a fixed order: flash-attention 414", "[laws]") {
  documents const d = uneven();
  One one;
  Threads threads;
  std::vector<float> const expected = gradients_of(one, d);
  for (int i = 0; i < 20; ++i) CHECK(gradients_of(threads, d) == expected);
}
TEST_CASE("positions begin again: Megatron-LM 453, torchtitan 2559", "[laws]") {
  One one;
  documents const together({9, 3, 13}, {3});
  std::vector<float> const all = outputs_of(one, together);
  std::size_t at = 0;
  for (int const n : together.lengths) {
    documents alone({n}, {1});
    alone.ids.assign(together.ids.begin() + long(at), together.ids.begin() + long(at) + n);
    CHECK(outputs_of(one, alone) == std::vector(all.begin() + long(at * words),
                                                all.begin() + long((at + std::size_t(n)) * words)));
    at += std::size_t(n);
  }
}
TEST_CASE("attention stays within a document: trl 1230", "[laws]") {
  One one;
  documents const d({8, 8, 8}, {3});
  documents changed = d;
  for (std::size_t t = 0; t < 24; ++t)
    if (t / 8 != 1) changed.ids[t] = (changed.ids[t] + 1) % words;
  std::vector<float> const a = outputs_of(one, d), b = outputs_of(one, changed);
  CHECK(std::equal(a.begin() + 8 * words, a.begin() + 16 * words, b.begin() + 8 * words));
  CHECK(!std::equal(a.begin(), a.begin() + 8 * words, b.begin()));
  CHECK(!std::equal(a.begin() + 16 * words, a.end(), b.begin() + 16 * words));
}
TEST_CASE("no convolution reads across a joint: torchtitan 3984, Automodel 2147", "[laws]") {
  struct Convolved
      : Model<Tokens<words, context>, Embedding<8>, Conv1d<8, 3>, Linear<words>, CrossEntropy> {};
  static_assert(detail::first_op_of_one_length<Convolved>() >= 0);
  static_assert(detail::first_op_of_one_length<GPT>() < 0);
}
TEST_CASE("no label is the next document's first: torchtune 2613, torchtitan 4075", "[laws]") {
  std::vector<int> const ids{1, 2, 3, 4, 5, 6, 7, 8}, lengths{3, 5};
  token_documents const packed(ids, lengths, {.context = context});
  CHECK(packed.labels == std::vector{2, 3, -1, 5, 6, 7, 8, -1});
  One one;
  double of[2];
  for (std::size_t i = 0; i < 2; ++i) {
    std::span const tokens = i == 0 ? std::span(ids).first(3) : std::span(ids).last(5);
    token_documents const alone(tokens, std::span(lengths).subspan(i, 1), {.context = context});
    of[i] = one.evaluate(alone);
  }
  CHECK(one.evaluate(packed) == Approx((2 * of[0] + 4 * of[1]) / 6));
}
TEST_CASE("each stage knows the segments: Megatron-LM 4092", "[laws]") {
  documents const d({9, 3, 1, 13, 4, 4, 16}, {3, 1, 2, 1});
  One one;
  Four four;  // whose attentions are in the first, second and third
  CHECK(outputs_of(one, d) == outputs_of(four, d));
  CHECK(gradients_of(one, d) == gradients_of(four, d));
}
TEST_CASE(
    "mini-batches of other shapes leave nothing behind: DeepSpeed 3195 and 4777, ColossalAI 5940, "
    "Megatron-LM 3869",
    "[laws]") {
  Four used;
  std::vector<documents> const all{documents({2}, {1}),
                                   documents(std::vector<int>(8, context), {2, 2, 2, 2}),
                                   documents(std::vector<int>(32, 4), {8, 8, 8, 8}),
                                   documents({3, 16, 1}, {1, 1, 1}),
                                   documents(std::vector<int>(9, 3), {8, 1}),
                                   documents({2}, {1})};
  for (documents const& d : all) {
    Four fresh;
    CHECK(gradients_of(used, d) == gradients_of(fresh, d));
    CHECK(outputs_of(used, d) == outputs_of(fresh, d));
  }
}
TEST_CASE("all processes compose alike: transformers 9574", "[laws]") {
  // The composition is a function of lengths and settings: not of the place, the time or what was
  // composed before.
  std::mt19937 random(3);
  std::vector<int> lengths;
  for (int i = 0; i < 200; ++i) lengths.push_back(1 + int(random() % context));
  documents const d(lengths);
  detail::batch_settings const s{.shuffle = true, .seed = 7, .epoch = 3, .packed = true};
  batches<One> one(One::batch{d.ids, d.labels}.set_lengths(d.lengths), s);
  for (auto const& b : one) CHECK(!b.micro_batches.empty());
  batches<Four> four(Four::batch{d.ids, d.labels}.set_lengths(d.lengths), s);
  auto theirs = four.begin();
  for (auto const& b : one) {
    REQUIRE(theirs != four.end());
    CHECK(std::ranges::equal(b.inputs, (*theirs).inputs));
    CHECK(std::ranges::equal(b.lengths, (*theirs).lengths));
    CHECK(std::ranges::equal(b.micro_batches, (*theirs).micro_batches));
    ++theirs;
  }
  CHECK(theirs == four.end());
}
