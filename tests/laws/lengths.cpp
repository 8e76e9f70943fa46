// SPDX-License-Identifier: BSL-1.0
//
// Lengths: samples of several lengths give the bits of the same samples padded to the context, in a
// pipeline without the option. Before each run all memory of values is full of signalling NaNs, so
// that a kernel that reads a row behind those that are there makes the results NaN.
#include "catch.hpp"

#include <cstring>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>

#include "laws/documents.hpp"
#include "poisoned.hpp"

using namespace pp;
using laws::documents;

namespace {

constexpr int words = 17, context = 24, classes = 5;

using Wide = Seq<Linear<20>, GELU, Linear<12>>;
struct Learned : Model<Tokens<words, context>, Embedding<12>, Positions,
                       Repeat<2, Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Wide>>,
                       LayerNorm, Linear<words>, CrossEntropy> {};
struct Rotary
    : Model<Tokens<words, context>, Embedding<16>, Dropout<1, 10>,
            Repeat<2, Residual<RMSNorm, Attention<4, KeyValueHeads<2>, RoPE<10000>>, Dropout<1, 5>>,
                   Residual<RMSNorm, Linear<48>, SwiGLU, Linear<16>>>,
            RMSNorm, Linear<words>, CrossEntropy> {};
struct Masked
    : Model<Tokens<words, context>, Embedding<12>, Positions,
            Repeat<2, Residual<LayerNorm, Attention<3, NotCausal>>, Residual<LayerNorm, Wide>>,
            LayerNorm, Linear<words>, CrossEntropy> {};
struct Sloped : Model<Tokens<words, context>, Embedding<12>,
                      Residual<LayerNorm, Attention<3, ALiBi, Window<5>>>, PReLU, Linear<words>,
                      CrossEntropy> {};
struct Classifier : Model<Tokens<words, context>, Embedding<12>, Positions,
                          Residual<LayerNorm, Attention<3, NotCausal>>, MeanPool, Dropout<1, 10>,
                          Linear<classes>, CrossEntropy> {};
struct Rated : Model<Tokens<words, context>, Embedding<12>, Residual<LayerNorm, Attention<2>>,
                     LastPosition, Linear<2>, MSE> {};

template <class M, class... Options>
using trainer_of = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<3>, Options...>;

/// Trains both, and compares all results: whole mini-batches and partly filled ones, padded and
/// dense, steps and accumulated steps, losses and outputs.
template <class One, class Several>
void compare(int steps) {
  constexpr int most = One::samples;
  One padded({.seed = 5, .clip_norm = 1});
  Several dense({.seed = 5, .clip_norm = 1});
  for (unsigned seed = 1; seed <= unsigned(steps); ++seed) {
    int const samples = seed % 3 == 0 ? most - 2 : most;
    documents<One> const of(seed, samples);
    typename Several::batch ragged{of.dense, of.dense_labels}, whole{of.padded, of.padded_labels};
    ragged.set_lengths(of.lengths);
    typename One::batch const reference{of.padded, of.padded_labels};
    CHECK(One::loss_terms(reference) == Several::loss_terms(ragged));
    for (bool const is_ragged : {true, false}) {
      auto const& given = is_ragged ? ragged : whole;
      poison(dense);
      CHECK(same(padded.evaluate(reference), dense.evaluate(given)));
      poison(dense);
      step_result const g = padded.gradients(reference), h = dense.gradients(given);
      CHECK(same(g.loss, h.loss));
      CHECK(same(g.gradient_norm, h.gradient_norm));
      CHECK(differences(padded, dense) == 0);
    }
    if constexpr (One::compiled::sum::accumulations == 1)
      if (seed == 2) {
        poison(dense);
        step_result const a = padded.accumulate(reference), b = dense.accumulate(ragged);
        CHECK(same(a.loss, b.loss));
      }
    poison(dense);
    step_result const a = padded.step(reference), b = dense.step(seed == 1 ? whole : ragged);
    CHECK(same(a.loss, b.loss));
    CHECK(same(a.gradient_norm, b.gradient_norm));
    CHECK(differences(padded, dense) == 0);

    constexpr long row = Several::outputs_per_sample / (documents<One>::by_row ? context : 1);
    std::vector<float> expected(std::size_t(samples * One::outputs_per_sample)),
        found(expected.size(), 7.f),
        rows(documents<One>::by_row ? of.dense.size() * std::size_t(row) : expected.size());
    padded.forward(of.padded, expected);
    poison(dense);
    dense.forward(of.padded, found);
    poison(dense);
    dense.forward(ragged, rows);
    long at = 0, differ = 0;
    for (int s = 0; s < samples; ++s) {
      long const real = documents<One>::by_row ? of.lengths[std::size_t(s)] : 1,
                 all = documents<One>::by_row ? context : 1;
      for (long k = 0; k < all * row; ++k) {
        float const out = found[std::size_t(s * all * row + k)];
        if (k >= real * row) {
          differ += out != 0;
          continue;
        }
        float const wanted = expected[std::size_t(s * all * row + k)];
        differ += std::memcmp(&wanted, &out, sizeof out) != 0;
        differ += std::memcmp(&wanted, &rows[std::size_t(at)], sizeof out) != 0;
        ++at;
      }
    }
    CHECK(differ == 0);
    CHECK(at == long(rows.size()));
  }
}

template <class M, class... Options>
void check(int steps = 3) {
  compare<trainer_of<M>, trainer_of<M, Lengths<>, Options...>>(steps);
}

/// Samples that fill the rows of the micro-batches, as many as fit, against a pipeline whose
/// micro-batches have room for as many padded samples, the rest of which are all padding.
template <class M, int Accumulations, class... Options>
void check_filled(int steps) {
  constexpr int many = 24, each = 3, micro_batches = 4;
  using Count = MicroBatches<micro_batches / Accumulations>;
  using Sum = GradientAccumulation<Accumulations>;
  using One = Pipeline<M, PortableHost, AdamW, Count, Sum, MicroBatchSize<many>>;
  using Several =
      Pipeline<M, PortableHost, AdamW, Count, Sum, MicroBatchSize<each>, Lengths<>, Options...>;
  One padded({.seed = 5, .clip_norm = 1});
  Several dense({.seed = 5, .clip_norm = 1});
  for (unsigned seed = 1; seed <= unsigned(steps); ++seed) {
    documents<One> const of(seed, micro_batches * many);
    std::vector<int> counts, lengths, ids, labels, padded_ids, padded_labels;
    std::size_t at = 0, from = 0;
    for (int mb = 0; mb < micro_batches - int(seed % 3); ++mb) {
      int rows = 0, count = 0;
      for (; count < many; ++count, ++at) {
        int const length = of.lengths[at], blocks = length > 8 ? (length + 7) / 8 : 1;
        if (rows + 8 * blocks > each * context) break;
        rows += 8 * blocks;
        lengths.push_back(length);
        for (int t = 0; t < context; ++t) {
          padded_ids.push_back(of.padded[at * context + std::size_t(t)]);
          padded_labels.push_back(of.padded_labels[at * context + std::size_t(t)]);
        }
        for (int t = 0; t < length; ++t, ++from)
          ids.push_back(of.dense[from]), labels.push_back(of.dense_labels[from]);
      }
      counts.push_back(count);
      padded_ids.resize(std::size_t((mb + 1) * many * context), -1);
      padded_labels.resize(padded_ids.size(), -1);
    }
    CHECK(long(lengths.size()) > each * long(counts.size()));
    typename Several::batch b{ids, labels};
    b.set_lengths(lengths).set_micro_batches(counts);
    poison(dense);
    CHECK(same(padded.evaluate({padded_ids, padded_labels}), dense.evaluate(b)));
    poison(dense);
    step_result const x = padded.step({padded_ids, padded_labels}), y = dense.step(b);
    CHECK(same(x.loss, y.loss));
    CHECK(same(x.gradient_norm, y.gradient_norm));
    CHECK(differences(padded, dense) == 0);
    std::vector<float> wanted(padded_ids.size() * words), rows(ids.size() * words);
    padded.forward(padded_ids, wanted);
    dense.forward(b, rows);
    std::size_t row = 0;
    long differ = 0;
    for (std::size_t i = 0, s = 0; i < counts.size(); ++i)
      for (int k = 0; k < counts[i]; ++k, ++s)
        for (int t = 0; t < lengths[s]; ++t, ++row)
          differ +=
              std::memcmp(&rows[row * words],
                          &wanted[((i * many + std::size_t(k)) * context + std::size_t(t)) * words],
                          sizeof(float) * words) != 0;
    CHECK(differ == 0);
  }
}

}  // namespace

TEST_CASE("lengths keep the bits of padding: learned positions, in 1, 2 and 4 stages", "[laws]") {
  check<Learned>();
  check<Learned, Stages<2>, OneFOneB>();
  check<Learned, Stages<4>, ZeroBubbleH1, HostThreads<2>>();
}
TEST_CASE("lengths keep the bits of padding: rotary positions and dropout", "[laws]") {
  check<Rotary, Stages<4>, Interleaved<2>, RecomputeAll>();
  check<Rotary, GPipe, Stages<2>, HostThreads<2>>();
}
TEST_CASE("lengths keep the bits of padding: an encoder", "[laws]") {
  check<Masked, Stages<2>, RecomputeAll>();
  check<Masked, StageReplicas<1, 2>>();
}
TEST_CASE("lengths keep the bits of padding: shaped scores and slopes", "[laws]") {
  check<Sloped>();
}
TEST_CASE("lengths keep the bits of padding: one row for each sample", "[laws]") {
  check<Classifier, Stages<3>>();
  check<Rated, HostThreads<2>>();
}
TEST_CASE("lengths keep the bits of padding: accumulations", "[laws]") {
  using Sum = GradientAccumulation<2>;
  compare<trainer_of<Rotary, Sum>, trainer_of<Rotary, Sum, Lengths<>, Stages<2>>>(3);
  compare<trainer_of<Classifier, Sum>, trainer_of<Classifier, Sum, Lengths<4>>>(3);
}
TEST_CASE("micro-batches filled with short samples keep the bits of padding", "[laws]") {
  check_filled<Learned, 1, Stages<2>, HostThreads<2>>(3);
  check_filled<Masked, 2, Stages<3>, RecomputeAll>(3);
}
TEST_CASE("the dropout of filled micro-batches does not depend on their place", "[laws]") {
  trainer_of<Rotary, Lengths<>> one({.seed = 5});
  trainer_of<Rotary, Lengths<>, Stages<4>, ZeroBubbleH1> four({.seed = 5});
  Pipeline<Rotary, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<3>, GradientAccumulation<2>,
           Lengths<>>
      sum({.seed = 5});
  documents<trainer_of<Rotary>> const of(1, 8);
  std::vector<int> const counts{2, 1, 3, 2};
  auto const batch_of = [&]<class Trainer>(Trainer&) {
    typename Trainer::batch b{of.dense, of.dense_labels};
    return b.set_lengths(of.lengths).set_micro_batches(counts);
  };
  step_result const a = one.step(batch_of(one)), b = four.step(batch_of(four));
  CHECK(same(a.loss, b.loss));
  CHECK(differences(one, four) == 0);
  // Losses of micro-batches are added in another order in the sum.
  CHECK(sum.gradients(batch_of(sum)).loss == Approx(a.loss).epsilon(1e-12));
}
