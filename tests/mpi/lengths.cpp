// SPDX-License-Identifier: BSL-1.0
//
// Lengths over processes: samples of several lengths have the bits of the same samples padded to
// the context, in one process without the option; messages between ranks are of the rows that are
// there.
#include "mpi/alike.hpp"

#include <cstddef>
#include <optional>
#include <vector>

#include <pipe/loose/delayed_replica.hpp>
#include <pipe/schedule/catalog/families.hpp>

#include "laws/documents.hpp"
#include "transport/counted.hpp"

using namespace pp;

namespace {

constexpr int words = 17, context = 24, width = 8;

/// Two values cross the cut before Pop, by `Quarters`.
struct Writer : Model<Tokens<words, context>, Embedding<width>, Dropout<1, 8>, Positions,
                      Residual<LayerNorm, Attention<2>>, Stash<"early">,
                      Residual<LayerNorm, Linear<16>, GELU, Linear<width>>, Pop<"early">, LayerNorm,
                      Linear<words>, CrossEntropy> {};
using Quarters = Cut<3, 5, 6>;
struct Classifier : Model<Tokens<words, context>, Embedding<width>, Positions,
                          Residual<LayerNorm, Attention<2, NotCausal>>, MeanPool, Linear<width>,
                          Tanh, Linear<2>, CrossEntropy> {};

template <class M, class... More>
using Of = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<2>, More...>;

/// Steps, evaluations and outputs of a trainer without Lengths in one process, and of one with.
/// speed: of this process, for its share of accumulations
template <class One, class Many>
void has_the_bits_of_padding(double speed = 0) {
  One one({.seed = 3, .clip_norm = .1});
  Many many({.seed = 3, .clip_norm = .1, .runtime = {.speed = speed}});
  INFO(Many::plan().schedule << ", " << Many::plan().rank_count << " ranks, process "
                             << Between::process() << " of " << Between::processes());
  for (unsigned step = 0; step < 3; ++step) {
    laws::documents<One> const of(step + 1, One::samples - 3 * int(step), 5);
    auto const padded = of.whole();
    auto const theirs = step == 1 ? of.template padded_batch<Many>() : of.template ragged<Many>();
    CHECK(laws::same_bits(one.evaluate(padded), many.evaluate(theirs)));
    auto const a = one.step(padded), b = many.step(theirs);
    CHECK(laws::same_losses(a, b));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
    CHECK(processes::same_parameters(one, many));

    constexpr bool by_row = laws::documents<One>::by_row;
    constexpr long rows = by_row ? context : 1, row = One::outputs_per_sample / rows;
    std::vector<float> expected(of.lengths.size() * One::outputs_per_sample),
        whole(expected.size(), 7.f),
        dense(by_row ? of.dense.size() * std::size_t(row) : expected.size());
    one.forward(padded, expected);
    many.forward(of.template padded_batch<Many>(), whole);
    many.forward(of.template ragged<Many>(), dense);
    std::size_t at = 0, differ = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      long const position = long(i) / row % rows;
      bool const is_there = !by_row || position < of.lengths[i / std::size_t(rows * row)];
      if (!is_there)
        differ += whole[i] != 0;
      else
        differ += !(whole[i] == expected[i] && dense[at++] == expected[i]);
    }
    CHECK(differ == 0);
    CHECK(at == dense.size());
  }
}

using counted = test_transports::counted<Between::transport>;
struct Counted {
  using transport = counted;
};

}  // namespace

TEST_CASE("lengths over processes have the bits of padding in one") {
  has_the_bits_of_padding<Of<Writer>, Of<Writer, Between, Stages<4>, Quarters, Lengths<>>>();
  has_the_bits_of_padding<Of<Classifier>, Of<Classifier, Between, Stages<4>, Lengths<4>>>();
  if (Between::processes() < 4)
    has_the_bits_of_padding<Of<Writer>, Of<Writer, Between, StageReplicas<1, 2>, Lengths<>>>();
}
TEST_CASE("lengths in replicas have the bits of padding in one pipeline") {
  using Sum = GradientAccumulation<4>;
  has_the_bits_of_padding<Of<Writer, Sum>, Of<Writer, Between, Sum, Lengths<>>>();
  has_the_bits_of_padding<Of<Writer, Sum>,
                          Of<Writer, Between, Sum, Stages<2>, ZeRO<2>, Lengths<>>>();
  has_the_bits_of_padding<Of<Writer, Sum>, Of<Writer, Between, Sum, ZeRO<3>, Lengths<>>>();
  // Replica 0 has the most accumulations: the later ones of a mini-batch that is not full have no
  // sample.
  using BySpeed = GradientAccumulationBySpeed<4>;
  double const speed = Between::process() == 0 ? 3 : 1;
  if (Between::processes() < 4)
    has_the_bits_of_padding<Of<Writer, Sum>, Of<Writer, Between, BySpeed, Lengths<>>>(speed);
}
TEST_CASE("micro-batches by tokens are spread over replicas") {
  using one = Of<Writer, GradientAccumulation<4>, Lengths<>>;
  using many = Of<Writer, Between, Lengths<>>;
  if (Between::processes() != 4) return;
  laws::documents<one> const of(1, 150);
  for (bool const packed : {false, true}) {
    one alone({.seed = 3, .clip_norm = .1});
    many spread({.seed = 3, .clip_norm = .1});
    CHECK(spread.batch_samples() == 4 * many::samples);
    detail::batch_settings s{.shuffle = true, .by_tokens = !packed, .packed = packed};
    auto const data = of.ragged<one>();
    auto const same_data = of.ragged<many>();
    batches<one> epoch(data, s);
    s.samples = spread.batch_samples();
    batches<many> same_epoch(same_data, s);
    CHECK(epoch.size() == same_epoch.size());
    auto given = same_epoch.begin();
    for (auto const& b : epoch) {  // the last one may leave replicas without a sample
      auto const x = alone.step(b), y = spread.step(*given);
      CHECK(laws::same_losses(x, y));
      CHECK(laws::same_bits(x.gradient_norm, y.gradient_norm));
      ++given;
    }
    CHECK(alone.steps() > 1);
    CHECK(processes::same_parameters(alone, spread));
  }
}
TEST_CASE("steps that overlap over processes have the bits of padding in one") {
  using one = Of<Writer>;
  using many = Of<Writer, Between, Stages<4>, Quarters, Steady<>, Lengths<>>;
  if (Between::processes() > 4) return;  // replicas
  one padded({.seed = 3});
  many dense({.seed = 3});
  std::vector<laws::documents<one>> all;
  for (unsigned step = 1; step <= 6; ++step) all.emplace_back(step, one::samples - int(step % 4));
  std::vector<typename many::batch> given;
  for (auto const& of : all) given.push_back(of.template ragged<many>());
  std::size_t step = 0;
  dense.train(given, [&](step_result const& b) {
    step_result const a = padded.step(all[step++].whole());
    CHECK(laws::same_losses(a, b));
    CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
  });
  CHECK(step == all.size());
  CHECK(processes::same_parameters(padded, dense));
}
TEST_CASE("replicas a step late have the bits of padding") {
  using one = Pipeline<Writer, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>>;
  using several = Pipeline<Writer, PortableHost, AdamW, MicroBatches<2>, MicroBatchSize<2>,
                           Stages<2>, Lengths<>>;
  one padded({.seed = 3});
  several dense({.seed = 3});
  delayed_replica<one, Between> late(padded);
  delayed_replica<several, Between> dense_late(dense);
  auto const same = [](std::optional<step_result> const& a, std::optional<step_result> const& b) {
    return a.has_value() == b.has_value() &&
           (!a || (laws::same_bits(a->loss, b->loss) &&
                   laws::same_bits(a->gradient_norm, b->gradient_norm)));
  };
  for (unsigned step = 0; step < 4;
       ++step) {  // in the last one the first replica alone has samples
    laws::documents<one> const of(step + 1, step == 3 ? 3 : late.batch_samples() - int(step), 5);
    CHECK(same(late.step(of.whole()), dense_late.step(of.template ragged<several>())));
  }
  CHECK(same(late.settle(), dense_late.settle()));
  CHECK(processes::same_values(padded, dense));
}
TEST_CASE("messages between ranks are of the rows that are there") {
  using trainer = Of<Writer, Counted, Stages<4>, Quarters, Lengths<>>;
  if (Between::processes() > 4) return;  // replicas
  trainer t({.seed = 3});
  long sent[2][4][4]{};
  int rows[2]{};
  for (int half = 0; half < 2; ++half) {
    std::vector<int> const lengths(std::size_t(trainer::samples), half == 0 ? 8 : 20);
    std::vector<int> const ids(lengths.size() * std::size_t(lengths[0]), 3);
    typename trainer::batch b{ids, ids};
    counted::seen.clear();
    t.step(b.set_lengths(lengths));
    rows[half] = trainer::samples * (half == 0 ? 8 : 24);
    for (int r = 0; r < 4; ++r)
      for (int to = 0; to < 4; ++to) sent[half][r][to] = counted::seen.sent[r][to];
  }
  // Two values cross the middle, which have one gradient; norms do not depend on rows.
  int const values[] = {1, 2, 1};
  transports::process_place const place = counted::place(4);
  for (int r = 0; r < 3; ++r) {
    long const more = long(rows[1] - rows[0]) * width * long(sizeof(float));
    INFO("between ranks " << r << " and " << r + 1);
    if (place.has(r)) CHECK(sent[1][r][r + 1] - sent[0][r][r + 1] == values[r] * more);
    if (place.has(r + 1)) CHECK(sent[1][r + 1][r] - sent[0][r + 1][r] == more);
  }
}
