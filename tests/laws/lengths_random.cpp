// SPDX-License-Identifier: BSL-1.0
//
// Lengths: random compositions of micro-batches have the bits of as many padded samples, in a
// pipeline without the option. One trainer runs them all, one after the other, so that lists,
// labels and rows of the mini-batch before are there to be read by mistake; its memory of values is
// full of signalling NaNs.
#include "catch.hpp"

#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <pipe/pipe.hpp>

#include "poisoned.hpp"

using namespace pp;

namespace {

constexpr int words = 13, context = 12, block = 4;
constexpr std::size_t positions = context;

/// Every way in which a layer reads a position: a table, rotations, slopes, a window.
struct Mixed : Model<Tokens<words, context>, Embedding<8>, Positions,
                     Residual<LayerNorm, Attention<2, KeyValueHeads<1>, RoPE<100>>>,
                     Residual<RMSNorm, Linear<12>, GELU, Linear<8>>,
                     Residual<LayerNorm, Attention<2, ALiBi, Window<5>>>,
                     Residual<Attention<1, NotCausal>>, LayerNorm, Linear<words>, CrossEntropy> {};
struct Dropped : Model<Tokens<words, context>, Embedding<8>, Dropout<1, 10>,
                       Residual<LayerNorm, Attention<2, RoPE<100>>, Dropout<1, 5>>, Linear<words>,
                       CrossEntropy> {};

/// A mini-batch, padded and dense. Each micro-batch has `of_reference` padded samples.
struct composition {
  std::vector<int> ids, labels, lengths, counts, padded_ids, padded_labels;
};

/// Micro-batches of 1, `most` or some samples, as far as there is room, of lengths about whole
/// blocks, of one position and of the context; now and then of none.
composition draw(std::mt19937& random, int micro_batches, int rows, int most, int of_reference) {
  auto const below = [&](int n) { return int(random() % unsigned(n)); };
  composition c;
  int const here = 1 + below(micro_batches);
  for (int mb = 0; mb < here; ++mb) {
    int const wanted[] = {1, most, 1 + below(most)}, target = wanted[below(3)];
    int used = 0, count = 0;
    for (; count < target; ++count) {
      int const usual[] = {1, block - 1, block, block + 1, context, 1 + below(context), 0};
      int length = usual[below(target == most ? 3 : mb == 0 && count == 0 ? 6 : 7)];
      if (mb == 0 && count == 0 && length < 2) length = 2;  // which has a label
      int const more = length > block ? (length + block - 1) / block * block : block;
      if (used + more > rows) break;
      used += more;
      c.lengths.push_back(length);
      for (int t = 0; t < context; ++t) {
        int const id = t < length ? below(words) : -1;
        int const label = t < length && (c.ids.empty() || below(5) > 0) ? below(words) : -1;
        c.padded_ids.push_back(id);
        c.padded_labels.push_back(label);
        if (t < length) c.ids.push_back(id), c.labels.push_back(label);
      }
    }
    c.counts.push_back(count);
    c.padded_ids.resize(std::size_t((mb + 1) * of_reference) * positions, -1);
    c.padded_labels.resize(c.padded_ids.size(), -1);
  }
  return c;
}

/// Compares losses, norms and gradients of random compositions, and every tenth time a step with
/// its parameters and optimizer. has_counts: whether micro-batches have other numbers of samples
/// than MicroBatchSize
template <class Padded, class Dense>
void compare(int compositions, bool has_counts) {
  constexpr int each = Dense::compiled::samples, of_reference = Padded::compiled::samples;
  constexpr int most = each * Dense::compiled::lengths::most;
  Padded padded({.seed = 3, .clip_norm = 1});
  Dense dense({.seed = 3, .clip_norm = 1});
  std::mt19937 random(17);
  int full = 0, single = 0;
  for (int n = 0; n < compositions; ++n) {
    composition c = draw(random, Dense::compiled::mini_batch, each * context,
                         has_counts ? most : each, of_reference);
    if (!has_counts) {
      // MicroBatchSize samples in all micro-batches but the last.
      c.padded_ids.clear(), c.padded_labels.clear();
      std::size_t at = 0;
      for (int const length : c.lengths) {
        for (int t = 0; t < context; ++t) {
          c.padded_ids.push_back(t < length ? c.ids[at + std::size_t(t)] : -1);
          c.padded_labels.push_back(t < length ? c.labels[at + std::size_t(t)] : -1);
        }
        at += std::size_t(length);
      }
      c.counts.clear();
    }
    for (int const count : c.counts) full += count == most, single += count == 1;
    typename Padded::batch const wanted{c.padded_ids, c.padded_labels};
    typename Dense::batch given{c.ids, c.labels};
    given.set_lengths(c.lengths).set_micro_batches(c.counts);
    INFO("composition " << n);
    poison(dense);
    bool const steps = n % 10 == 9;
    step_result const a = steps ? padded.step(wanted) : padded.gradients(wanted),
                      b = steps ? dense.step(given) : dense.gradients(given);
    REQUIRE(same(a.loss, b.loss));
    REQUIRE(same(a.gradient_norm, b.gradient_norm));
    REQUIRE(differences(padded, dense) == 0);
  }
  if (has_counts) {
    CHECK(full > compositions / 4);
    CHECK(single > compositions / 4);
  }
}

}  // namespace

TEST_CASE("700 random compositions have the bits of padded samples", "[laws]") {
  using Padded = Pipeline<Mixed, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<6>>;
  using Dense = Pipeline<Mixed, PortableHost, AdamW, MicroBatches<3>, MicroBatchSize<2>,
                         Lengths<block, 3>, Stages<2>, ZeroBubbleH1>;
  compare<Padded, Dense>(700, true);
}
TEST_CASE("300 random compositions with dropout, in double, have the bits of padded samples",
          "[laws]") {
  using Padded = Pipeline<Dropped, PortableHost, FP64, AdamW, MicroBatches<3>, MicroBatchSize<2>>;
  using Dense = Pipeline<Dropped, PortableHost, FP64, AdamW, MicroBatches<3>, MicroBatchSize<2>,
                         Lengths<block>, HostThreads<2>>;
  compare<Padded, Dense>(300, false);
}
TEST_CASE("dropout draws by a sample's number in the mini-batch, not by its micro-batch",
          "[laws]") {
  using Single = Pipeline<Dropped, PortableHost, MicroBatches<12>, MicroBatchSize<1>>;
  using Dense =
      Pipeline<Dropped, PortableHost, MicroBatches<3>, MicroBatchSize<2>, Lengths<block, 3>>;
  Single single({.seed = 3});
  Dense dense({.seed = 3});
  std::mt19937 random(5);
  for (int n = 0; n < 20; ++n) {
    composition const c = draw(random, 3, 2 * context, 4, 4);
    std::vector<int> ids, labels;  // without the samples that fill micro-batches
    for (std::size_t s = 0, mb = 0, here = 0; s < c.lengths.size(); ++s, ++here) {
      while (here == std::size_t(c.counts[mb])) ++mb, here = 0;
      auto const from = long((4 * mb + here) * positions);
      ids.insert(ids.end(), c.padded_ids.begin() + from, c.padded_ids.begin() + from + context);
      labels.insert(labels.end(), c.padded_labels.begin() + from,
                    c.padded_labels.begin() + from + context);
    }
    typename Dense::batch given{c.ids, c.labels};
    given.set_lengths(c.lengths).set_micro_batches(c.counts);
    // Sums of micro-batches are added in another order.
    CHECK(dense.gradients(given).loss == Approx(single.gradients({ids, labels}).loss));
    auto const a = single.parameters(), b = dense.parameters();
    double norm = 0, apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
      for (std::size_t e = 0; e < a[i].gradients.size(); ++e) {
        double const x = a[i].gradients[e], y = b[i].gradients[e];
        norm += x * x, apart += (x - y) * (x - y);
      }
    CHECK(apart < 1e-10 * norm);
  }
}
