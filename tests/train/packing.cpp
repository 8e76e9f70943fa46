// SPDX-License-Identifier: BSL-1.0
//
// Documents and packed micro-batches: labels within their documents, first fit decreasing, and
// epochs of unequal mini-batches that are resumed.
#include "catch.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <pipe/data/token_documents.hpp>
#include <pipe/pipe.hpp>
#include <pipe/train/batches_ahead.hpp>

#include "message_of.hpp"

using namespace pp;

namespace {

struct GPT : Model<Tokens<256, 32>, Embedding<16>, Positions, Residual<LayerNorm, Attention<2>>,
                   LayerNorm, Linear<256>, CrossEntropy> {};
using Trainer = Pipeline<GPT, MicroBatches<2>, MicroBatchSize<2>, PortableHost, AdamW, Lengths<>>;
constexpr int context = 32, room = 64, most = 16;  // room and most: of a micro-batch

/// Documents whose ids are their numbers, modulo 256.
struct drawn_documents {
  std::vector<int> ids, lengths;
  drawn_documents(unsigned seed, int count, int longest = context) {
    std::mt19937 random(seed);
    for (int d = 0; d < count; ++d) {
      lengths.push_back(2 + int(random() % unsigned(longest - 1)));
      ids.insert(ids.end(), std::size_t(lengths.back()), d % 256);
    }
  }
};

int rows_of(int length) { return (length + 7) / 8 * 8; }

/// A mini-batch, copied, and the position behind it.
struct reached {
  std::vector<int> ids, labels, lengths, counts;
  long position;
  bool operator==(reached const&) const = default;
};
template <class Epoch>
std::vector<reached> all_of(Epoch&& epoch) {
  std::vector<reached> all;
  for (Trainer::batch const& b : epoch)
    all.push_back({{b.inputs.begin(), b.inputs.end()},
                   {b.labels.begin(), b.labels.end()},
                   {b.lengths.begin(), b.lengths.end()},
                   {b.micro_batches.begin(), b.micro_batches.end()},
                   epoch.sample_position()});
  return all;
}
std::vector<reached> epoch_of(Trainer::batch const& data, detail::batch_settings const& s) {
  return all_of(batches<Trainer>(data, s));
}

}  // namespace

TEST_CASE("the labels of documents are their next tokens, and none crosses a joint") {
  std::vector<int> const ids{1, 2, 3, 4, 5, 6, 7, 8, 9}, lengths{3, 1, 0, 5};
  token_documents const whole(ids, lengths, {.context = 5});
  CHECK(whole.ids == std::vector{1, 2, 3, 5, 6, 7, 8, 9});
  CHECK(whole.labels == std::vector{2, 3, -1, 6, 7, 8, 9, -1});
  CHECK(whole.lengths == std::vector{3, 5});
  token_documents const cut(ids, lengths, {.context = 2, .cut = true});
  CHECK(cut.ids == std::vector{1, 2, 5, 6, 7, 8});  // 3 and 9 have no label
  CHECK(cut.labels == std::vector{2, 3, 6, 7, 8, 9});
  CHECK(cut.lengths == std::vector{2, 2, 2});
  token_documents const uneven(ids, lengths, {.context = 3, .cut = true});
  CHECK(uneven.ids == std::vector{1, 2, 3, 5, 6, 7, 8, 9});
  CHECK(uneven.labels == std::vector{2, 3, -1, 6, 7, 8, 9, -1});
  CHECK(uneven.lengths == std::vector{3, 3, 2});
}
TEST_CASE("documents that are too long, or do not add up, are refused") {
  std::vector<int> const ids(9, 1);
  auto const refused = [&](std::vector<int> const& lengths, token_documents::settings const& s) {
    return message_of<data_error>([&] { token_documents documents(ids, lengths, s); });
  };
  CHECK(refused({4, 5}, {.context = 4}) ==
        "token_documents: document 1 has 5 tokens, which is not in [0, 4]: with .cut = true it "
        "becomes several samples");
  CHECK(refused({10, -1}, {.context = 4, .cut = true}) ==
        "token_documents: document 1 has -1 tokens, which is not in [0, 4]");
  CHECK(refused({4, 4}, {.context = 4}) ==
        "token_documents: the sum of the lengths is 8, but there are 9 tokens");
  CHECK(refused({9}, {}) == "token_documents: context: expected 1 or more, got 0");
  CHECK(refused({9}, {.context = 4, .cut = true}) == "no error");
}
TEST_CASE("packed micro-batches are those of first fit decreasing") {
  drawn_documents const d(1, 300);
  std::vector<reached> const all =
      epoch_of(Trainer::batch{d.ids, d.ids}.set_lengths(d.lengths), {.packed = true});
  // The plain form: each document, in descending order, tries all micro-batches.
  std::vector<int> order(d.lengths.size()), rows;
  std::vector<std::vector<int>> bins;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(
      order, [&](int a, int b) { return d.lengths[std::size_t(a)] > d.lengths[std::size_t(b)]; });
  for (int const s : order) {
    int const n = d.lengths[std::size_t(s)], more = rows_of(n);
    std::size_t bin = 0;
    while (bin < bins.size() && (rows[bin] + more > room || int(bins[bin].size()) == most)) ++bin;
    if (bin == bins.size()) bins.emplace_back(), rows.push_back(0);
    rows[bin] += more;
    bins[bin].push_back(n);
  }
  std::vector<std::vector<int>> found;
  for (reached const& b : all) {
    std::size_t at = 0;
    for (int const count : b.counts) {
      found.emplace_back(b.lengths.begin() + long(at), b.lengths.begin() + long(at) + count);
      at += std::size_t(count);
    }
    CHECK(at == b.lengths.size());
    CHECK(b.ids == b.labels);
  }
  std::ranges::sort(found);  // each mini-batch has its shortest micro-batches at both ends
  std::ranges::sort(bins);
  CHECK(found == bins);
  int full = 0;
  for (int const n : rows) full += n == room;
  CHECK(full > int(rows.size()) * 9 / 10);
  // In their order they need more.
  auto const in_order =
      epoch_of(Trainer::batch{d.ids, d.ids}.set_lengths(d.lengths), {.by_tokens = true});
  CHECK(in_order.size() > all.size());
}
TEST_CASE("a packed epoch has every document once, whole, and differs by seed and epoch") {
  drawn_documents const d(2, 256);
  token_documents const documents(d.ids, d.lengths, {.context = context});
  auto const packed = [&](std::uint64_t seed, long number) {
    return epoch_of(documents, {.shuffle = true, .seed = seed, .epoch = number, .packed = true});
  };
  auto const one = packed(1, 0);
  std::vector<int> found(256);
  for (reached const& b : one) {
    std::size_t at = 0;
    for (int const n : b.lengths) {
      int const document = b.ids[at];
      CHECK(n == d.lengths[std::size_t(document)]);
      ++found[std::size_t(document)];
      for (int t = 0; t < n; ++t, ++at) {
        CHECK(b.ids[at] == document);
        CHECK(b.labels[at] == (t + 1 < n ? document : -1));
      }
    }
    CHECK(at == b.ids.size());
  }
  CHECK(found == std::vector<int>(256, 1));
  CHECK(one == packed(1, 0));
  CHECK(one != packed(2, 0));
  CHECK(one != packed(1, 1));
}
TEST_CASE("many short documents are packed by their number, too") {
  std::vector<int> const lengths(100, 2), ids(200, 7);
  token_documents const documents(ids, lengths, {.context = context});
  std::vector<int> counts;
  for (reached const& b : epoch_of(documents, {.packed = true}))
    counts.insert(counts.end(), b.counts.begin(), b.counts.end());
  // A block has 8 rows, so that 8 documents fill 64.
  CHECK(counts == std::vector{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 4});
  using Few = Pipeline<GPT, MicroBatches<2>, MicroBatchSize<2>, PortableHost, Lengths<8, 3>>;
  counts.clear();
  for (auto const& b : batches<Few>(documents, {.packed = true}))
    counts.insert(counts.end(), b.micro_batches.begin(), b.micro_batches.end());
  CHECK(counts.size() == 17);
  CHECK(*std::ranges::max_element(counts) == 6);
}
TEST_CASE("epochs by length, by tokens and packed go on at a sample position") {
  drawn_documents const d(3, 203);
  token_documents const documents(d.ids, d.lengths, {.context = context});
  for (int const by : {0, 1, 2})
    for (bool const drop_last : {false, true}) {
      auto const settings = [&](long position) {
        return detail::batch_settings{.shuffle = true,
                                      .seed = 4,
                                      .drop_last = drop_last,
                                      .sample_position = position,
                                      .by_length = by == 0,
                                      .by_tokens = by == 1,
                                      .packed = by == 2};
      };
      std::vector<reached> run;  // two epochs
      for (long position = 0; position < 2 * 203;) {
        auto const epoch = epoch_of(documents, settings(position));
        run.insert(run.end(), epoch.begin(), epoch.end());
        position = run.back().position;
      }
      CHECK(run.back().position == 2 * 203);
      for (std::size_t i = 0; i + 1 < run.size(); ++i) {
        auto const rest = epoch_of(documents, settings(run[i].position));
        CHECK(rest.size() <= run.size() - i - 1);
        CHECK(std::equal(rest.begin(), rest.end(), run.begin() + long(i) + 1));
      }
    }
}
TEST_CASE("mini-batches of unequal numbers of samples are made ahead, and resumed") {
  drawn_documents const d(5, 150);
  token_documents const documents(d.ids, d.lengths, {.context = context});
  for (int const by : {0, 1, 2}) {
    auto const settings = [&](long position) {
      return detail::batch_settings{.shuffle = true,
                                    .seed = 4,
                                    .sample_position = position,
                                    .by_length = by == 0,
                                    .by_tokens = by == 1,
                                    .packed = by == 2};
    };
    std::vector<reached> const run = epoch_of(documents, settings(0));
    batches<Trainer> epoch(documents, settings(0));
    long position = 0;
    std::size_t steps = 0;
    {
      batches_ahead<Trainer> ahead(epoch, {.depth = 3});
      for (auto const& b : ahead) {
        CHECK(std::ranges::equal(b.inputs, run[steps].ids));
        position = ahead.sample_position();
        CHECK(position == run[steps].position);
        if (++steps == 4) break;
      }
    }
    batches<Trainer> rest(documents, settings(position));
    batches_ahead<Trainer> ahead(rest, {.depth = 3});
    std::vector<reached> const later = all_of(ahead);
    CHECK(later == std::vector(run.begin() + 4, run.end()));
  }
}
TEST_CASE("a function that makes mini-batches ahead may compose them") {
  std::vector<int> const lengths{3, 5, 2, 2}, counts{1, 3};
  batches_ahead<Trainer> ahead([&](owned_batch<Trainer>& b, long place) {
    if (place == 12) return false;
    CHECK(b.lengths.empty());  // of the mini-batch before
    b.inputs.assign(12, int(place));
    b.labels.assign(12, int(place));
    b.lengths = lengths;
    b.micro_batches = counts;
    return true;
  });
  Trainer trainer;
  for (auto const& b : ahead) {
    CHECK(std::ranges::equal(b.lengths, lengths));
    CHECK(std::ranges::equal(b.micro_batches, counts));
    CHECK(b.inputs[0] == 4 * int(trainer.steps()));
    trainer.step(b);
    CHECK(ahead.sample_position() == 4 * trainer.steps());
  }
  CHECK(trainer.steps() == 3);
}
TEST_CASE("a place within a mini-batch is no place to go on at") {
  drawn_documents const d(6, 60);
  token_documents const documents(d.ids, d.lengths, {.context = context});
  CHECK(message_of<data_error>(
            [&] { batches<Trainer> epoch(documents, {.sample_position = 61, .packed = true}); }) ==
        "batches: sample_position: no mini-batch of epoch 1 begins at sample 1: by_length, "
        "by_tokens and packed go on only with the data set, the settings and the sizes of the run "
        "that was left");
  CHECK(message_of<data_error>(
            [&] { batches<Trainer> epoch(documents, {.by_tokens = true, .packed = true}); }) ==
        "batches: by_tokens: mini-batches have different numbers of samples, so position and "
        "another composition do not go with it: resume by sample_position");
}
TEST_CASE("data sets with lengths are divided as padded ones") {
  drawn_documents const d(7, 41);
  token_documents const documents(d.ids, d.lengths, {.context = context});
  std::vector<int> ids(41 * context, -1), labels(ids);
  std::size_t from = 0;
  for (std::size_t s = 0; s < 41; ++s)
    for (int t = 0; t < d.lengths[s]; ++t, ++from) {
      ids[s * context + std::size_t(t)] = documents.ids[from];
      labels[s * context + std::size_t(t)] = documents.labels[from];
    }
  for (bool const shuffle : {false, true})
    for (int const by : {0, 1, 2, 3}) {
      detail::batch_settings const s{
          .shuffle = shuffle, .by_length = by == 1, .by_tokens = by == 2, .packed = by == 3};
      Trainer ragged({.seed = 1}), padded({.seed = 1});
      for (auto const& b : batches<Trainer>(documents, s)) ragged.step(b);
      for (auto const& b : batches<Trainer>({ids, labels}, s)) padded.step(b);
      CHECK(ragged.steps() == padded.steps());
      for (std::size_t i = 0; i < ragged.parameters().size(); ++i)
        CHECK(std::ranges::equal(ragged.parameters()[i].values, padded.parameters()[i].values));
      CHECK(evaluate_all(ragged, documents) == evaluate_all(padded, {ids, labels}));
    }
}
TEST_CASE("packed documents are trained") {
  drawn_documents const d(8, 90, 3 * context);
  std::vector<int> const &ids = d.ids, &lengths = d.lengths;
  // [packed]
  token_documents const documents(ids, lengths,
                                  {.context = Trainer::inputs_per_sample, .cut = true});
  Trainer trainer;
  long position = 0;
  while (position < 2 * long(documents.lengths.size())) {  // two epochs
    batches<Trainer> epoch(
        documents, {.shuffle = true, .seed = 1, .sample_position = position, .packed = true});
    for (auto const& batch : epoch) {
      trainer.step(batch);
      position = epoch.sample_position();  // what a checkpoint keeps
    }
  }
  double const loss = evaluate_all(trainer, documents);
  // [/packed]
  CHECK(trainer.steps() > 10);
  CHECK(loss < 5.5);
}
