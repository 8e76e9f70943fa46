// SPDX-License-Identifier: BSL-1.0
//
// What lengths are expected to cost: compositions, which are those of batches; times, whose parts
// are those of the plan; and what the text says. Nothing is timed.
#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/plan/compiled/planned.hpp>
#include <pipe/report/explain_lengths.hpp>
#include <pipe/report/html.hpp>
#include <pipe/report/lengths_drawing.hpp>
#include <pipe/report/problem_file.hpp>

#include "message_of.hpp"

namespace {

using namespace pp;

template <int Context>
struct GPT : Model<Tokens<256, Context>, Embedding<96>, Positions,
                   Repeat<4, Residual<LayerNorm, Attention<3>>,
                          Residual<LayerNorm, Linear<384>, GELUTanh, Linear<96>>>,
                   LayerNorm, Linear<256>, CrossEntropy> {};
template <int Context, class... Options>
using Texts =
    Planned<GPT<Context>, Stages<4>, MicroBatches<16>, MicroBatchSize<4>, AdamW, Options...>;

/// Lengths from 1/16 of the context to all of it, each half as frequent as the one before.
std::vector<int> lengths_of_texts(int count, int context) {
  std::mt19937 random(11);
  std::vector<int> all;
  for (int i = 0; i < count; ++i) {
    int k = 0;
    while (k < 4 && random() % 2 == 0) ++k;
    all.push_back((context / 16) << k);
  }
  return all;
}

}  // namespace

namespace {

struct Words : Model<Tokens<11, 16>, Embedding<6>, Linear<11>, CrossEntropy> {};
template <template <class, class...> class Kind>
using Small = Kind<Words, PortableHost, Stages<2>, MicroBatches<6>, MicroBatchSize<2>, AdamW,
                   Lengths<4>, GradientAccumulation<2>>;

/// Texts padded to 16 positions whose first id is their number.
struct numbered_texts {
  std::vector<int> ids, labels, lengths;
  explicit numbered_texts(int count) {
    std::mt19937 random(3);
    for (int s = 0; s < count; ++s) {
      lengths.push_back(1 + int(random() % 16));
      for (int t = 0; t < 16; ++t) {
        ids.push_back(t < lengths.back() ? int(random() % 11) : -1);
        labels.push_back(ids.back());
      }
    }
  }
};

/// The makespan of full micro-batches, and what a step takes beside it.
template <class P>
double full_step() {
  using compiled = typename P::compiled;
  auto const of = detail::step_on_cores<compiled>().by_length();
  schedules::uneven_problem<std::remove_const_t<decltype(of.all)>> const full{
      of.all, of.squares, of.fixed, {{1, 1}}};
  return double(simulate(full, compiled::table()).makespan) + of.of_step;
}

}  // namespace

TEST_CASE("compositions for plans are those of batches", "[report]") {
  using Trainer = Small<Pipeline>;
  numbered_texts const data(1300);
  using compiled = Trainer::compiled;
  auto const room = detail::room_of<compiled>();
  std::span<int const> const given[] = {data.lengths};
  detail::expected_epochs<compiled> const expected(detail::measure_rows<compiled>("", given));
  using enum detail::composition;
  for (auto const way : {as_they_come, by_length, by_tokens, packed}) {
    auto const epoch = detail::compose(data.lengths, room, way, 7);
    batches<Trainer> made({data.ids, data.labels}, {.shuffle = true,
                                                    .seed = 7,
                                                    .by_length = way == by_length,
                                                    .by_tokens = way == by_tokens,
                                                    .packed = way == packed});
    REQUIRE(std::size_t(made.size()) == epoch.size());
    std::vector<int> ids, in_order, counts;
    for (auto const& b : made) {
      ids.insert(ids.end(), b.inputs.begin(), b.inputs.end());
      counts.insert(counts.end(), b.micro_batches.begin(), b.micro_batches.end());
    }
    for (std::size_t const s : epoch.order)
      in_order.insert(in_order.end(), data.ids.begin() + long(16 * s),
                      data.ids.begin() + long(16 * (s + 1)));
    CHECK(ids == in_order);
    if (way == by_tokens || way == packed) CHECK(counts == epoch.counts);
    auto const loads = detail::loads_of(epoch, data.lengths, room);
    auto const of_chunks = expected.loads(epoch);  // of which both have the rows of one input
    REQUIRE(of_chunks.size() == 2 * loads.size());
    for (std::size_t i = 0; i < of_chunks.size(); ++i) {
      CHECK(of_chunks[i].rows == loads[i / 2].rows);
      CHECK(of_chunks[i].squares == 0);  // the model has no attention
    }
    double rows = 0, of_lengths = 0;
    for (auto const& load : loads) {
      CHECK(load.rows <= 1 + 1e-9);
      CHECK(load.squares <= load.rows + 1e-9);
      rows += load.rows;
    }
    for (int const n : data.lengths) of_lengths += (n + 3) / 4 * 4;
    CHECK(32 * rows == Approx(of_lengths));
  }
}

TEST_CASE("full micro-batches take what the plan of a step expects", "[report]") {
  using P = Texts<512, Lengths<>>;
  detail::step_on_cores<P::compiled> const expected;
  CHECK(full_step<P>() == Approx(expected.of_plan().time).epsilon(1e-5));
}

TEST_CASE("samples of half the context take what a model of that context is expected to",
          "[report]") {
  using compiled = Texts<512, Lengths<>>::compiled;
  auto const of = detail::step_on_cores<compiled>().by_length();
  schedules::uneven_problem<std::remove_const_t<decltype(of.all)>> const half{
      of.all, of.squares, of.fixed, {{.5, .25}}};
  double const time = double(simulate(half, compiled::table()).makespan) + of.of_step;
  // Short samples stay in the caches more often, so that their model is expected to be faster.
  double const own = full_step<Texts<256, Lengths<>>>();
  CHECK(own <= time);
  CHECK(time < 1.1 * own);
  CHECK(time < .5 * full_step<Texts<512, Lengths<>>>());
  // A window bounds the scores, so that nothing grows with the square.
  using Windowed = Planned<
      Model<Tokens<256, 512>, Embedding<32>, Attention<2, Window<32>>, Linear<256>, CrossEntropy>,
      Stages<2>, MicroBatches<2>, AdamW, Lengths<>>;
  for (auto const& c : detail::step_on_cores<Windowed::compiled>().by_length().squares.costs)
    CHECK(c.forward + c.backward_input + c.backward_weight == 0);
}

TEST_CASE("lengths are explained by bucket and by composition", "[report]") {
  using Trainer = Texts<512, Lengths<>>;
  std::vector<int> const lengths = lengths_of_texts(3200, 512);
  // [told]
  std::string const told = explain_lengths<Trainer>(lengths);  // of each sample of the data set
  // [/told]
  CHECK(told ==
        R"(3,200 samples of 512 positions, 308,288 tokens: 81.2 % padding, 0.0 % in blocks of 8
 tokens  samples  of tokens  a sample  all samples  of time
   0-64    2,404     33.5 %   1.53 ms       3.68 s   30.2 %
 65-128      409     17.0 %   4.75 ms       1.94 s   15.9 %
193-256      178     14.8 %   10.1 ms       1.80 s   14.8 %
449-512      209     34.7 %   22.8 ms       4.76 s   39.1 %
a sample: expected time of forward and backward on all stages, one after the other

composition              steps   a step  an epoch  tokens/s  bubble  by slots
as they come                50   116 ms    5.80 s    53,169  47.3 %     0.0 %
.by_length                  50  81.3 ms    4.06 s    75,876  24.8 %     0.0 %
.by_tokens                  11   364 ms    4.00 s    77,071  23.8 %     0.0 %
.packed                     11   354 ms    3.90 s    79,090  21.8 %     0.0 %
padded, without Lengths     50   477 ms    23.8 s    12,930  23.5 %     0.0 %
an epoch: simulated with the schedule; by slots: what ranks wait for room between stages
between ranks: 677.4 MiB of values and gradients in an epoch, 3.5 GiB padded
.packed takes the least time
)");
  numbered_texts const data(130);
  std::string const text = explain_lengths<Small<Pipeline>>(data.lengths);
  CHECK(text == explain_lengths<Small<Planned>>(data.lengths));
  CHECK(text.find(".by_tokens") != text.npos);
  // A row of each sample is planned for MicroBatchSize of them.
  using Classifier = Planned<Model<Tokens<11, 16>, Embedding<6>, MeanPool, Linear<3>, CrossEntropy>,
                             PortableHost, MicroBatchSize<2>, Lengths<4>>;
  CHECK(explain_lengths<Classifier>(data.lengths).find(".by_tokens") == text.npos);
}

TEST_CASE("lengths of two inputs are explained by pairs", "[report]") {
  struct Answers
      : Model<Tokens<11, 32>, Embedding<16>, Residual<LayerNorm, Attention<2, NotCausal>>,
              Stash<"asked">, Named<"answer", Tokens<7, 16>>, Embedding<16>,
              Residual<LayerNorm, Attention<2>>, Residual<LayerNorm, CrossAttention<2, "asked">>,
              Linear<7>, CrossEntropy> {};
  using P = Planned<Answers, PortableHost, Stages<2>, Cut<2>, MicroBatches<4>, MicroBatchSize<2>,
                    AdamW, Lengths<8>>;
  using compiled = P::compiled;
  auto const loads_of = [](int asked, int answered) {
    std::vector<int> const a{asked}, b{answered};
    std::span<int const> const given[] = {a, b};
    detail::expected_epochs<compiled> const expected(detail::measure_rows<compiled>("", given));
    return expected.loads({{0}, {1}, 4});
  };
  // The encoder's time is that of its rows alone; what attends to both has the product.
  auto const whole = loads_of(32, 16), half_asked = loads_of(16, 16), half_answer = loads_of(32, 8);
  REQUIRE(whole.size() == 4 * 2);
  for (int c : {0, 1}) {
    std::size_t const chunk = std::size_t(c);
    CHECK(whole[chunk].rows == Approx(.5));  // one sample of two
    CHECK(whole[chunk].squares == Approx(.5));
  }
  CHECK(half_asked[0].rows == Approx(.25));
  CHECK(half_asked[0].squares == Approx(.125));
  CHECK(half_answer[0].rows == Approx(.5));
  CHECK(half_asked[1].rows > .25);
  CHECK(half_asked[1].rows < .5);
  CHECK(half_answer[1].rows > .25);
  CHECK(half_answer[1].squares > .125);  // half of the product, a quarter of the decoder's own
  CHECK(half_answer[1].squares < .25);
  CHECK(whole[2].rows == 0);  // without a sample

  std::vector<int> asked, answered;
  for (int i = 0; i < 60; ++i) asked.push_back(i % 3 == 0 ? 32 : 7), answered.push_back(1 + i % 16);
  std::string const text = explain_lengths<P>(asked, answered);
  INFO(text);
  CHECK(text.starts_with("60 samples of 48 positions, "));
  CHECK(text.find("tokens  answer  samples") != text.npos);
  CHECK(text.find("   0-8     0-8       21") != text.npos);
  CHECK(text.find(" 25-32    9-16        9") != text.npos);
  CHECK(text.find(".packed") != text.npos);
  // Mini-batches are those of batches.
  using Trainer = Pipeline<Answers, PortableHost, Stages<2>, Cut<2>, MicroBatches<4>,
                           MicroBatchSize<2>, AdamW, Lengths<8>>;
  std::vector<int> const ids(std::size_t(std::accumulate(asked.begin(), asked.end(), 0)), 1),
      words(std::size_t(std::accumulate(answered.begin(), answered.end(), 0)), 1);
  Trainer::batch data{ids, words};
  data.set<"answer">(words).set_lengths(asked).set_lengths<"answer">(answered);
  std::span<int const> const given[] = {asked, answered};
  auto const rows = detail::measure_rows<compiled>("", given);
  for (bool const packed : {false, true}) {
    std::vector<int> counts;
    for (auto const& batch : batches<Trainer>(
             data, {.shuffle = true, .seed = 1, .by_tokens = !packed, .packed = packed}))
      counts.insert(counts.end(), batch.micro_batches.begin(), batch.micro_batches.end());
    CHECK(counts ==
          detail::compose(rows, detail::room_of<compiled>(),
                          packed ? detail::composition::packed : detail::composition::by_tokens, 1)
              .counts);
  }
  auto const refused = [](auto const&... lengths) {
    return message_of<data_error>([&] { explain_lengths<P>(lengths...); });
  };
  CHECK(refused(asked) ==
        "explain_lengths: expected the lengths of 2 inputs of token ids, in their order, got those "
        "of 1");
  answered.pop_back();
  CHECK(refused(asked, answered) == "explain_lengths: expected 60 samples, got 59");
}

TEST_CASE("lengths that no sample has are refused", "[report]") {
  auto const refused = [](std::vector<int> const& lengths) {
    return message_of<data_error>([&] { explain_lengths<Small<Planned>>(lengths); });
  };
  CHECK(refused({}) == "explain_lengths: expected the length of each sample, got none");
  CHECK(refused({3, 17}) == "explain_lengths: 17 at position 1 is not in [0, 16]");
  CHECK(refused({-1}) == "explain_lengths: -1 at position 0 is not in [0, 16]");
}

TEST_CASE("a mini-batch of samples of several lengths is drawn", "[report]") {
  using P = Small<Planned>;
  using compiled = P::compiled;
  std::vector<int> const lengths{16, 3, 9, 9, 1, 5, 6, 16, 16};
  using Trainer = P;
  // [drawn]
  drawings::drawing const d = drawings::of_lengths<Trainer>(lengths);  // of a mini-batch
  std::string const page = drawings::as_html(d);
  // [/drawn]
  CHECK(page.find(d.words.note) != page.npos);
  REQUIRE(d.ranks.size() == 2);
  // By micro-batch the time of its forward on rank 0: five of them, and one without samples.
  std::vector<long> times(6);
  for (auto const& a : d.ranks[0].actions)
    if (a.what.kind == schedules::action_kind::forward)
      times[std::size_t(a.what.micro_batch)] = a.end - a.start;
  std::span<int const> const given[] = {lengths};
  detail::expected_epochs<compiled> const expected(detail::measure_rows<compiled>("", given));
  auto full = expected.full();
  full.loads = {{1, 1}};
  long const whole = full.time({schedules::action_kind::forward, 0, 0});
  CHECK(times[5] == 0);
  CHECK(times[3] < whole);
  CHECK(times[2] < times[1]);
  CHECK(times[4] < times[3]);
  CHECK(d.words.note == "padding 43.8 % of padded samples, 15.6 % of whole blocks");
  CHECK(detail::summary_of(d).ends_with(", " + d.words.note));
  CHECK(d.floor.time == 0);
  // Four samples of 16 rows together have as much room as two of 32.
  std::vector<int> const counts{4, 4, 1};
  auto const by_counts = drawings::of_lengths<P>({{4, 4, 4, 4, 1, 5, 6, 12, 16}}, counts);
  CHECK(by_counts.makespan > 0);
  auto const refused = [](std::vector<int> const& of, std::vector<int> const& samples) {
    return message_of<data_error>([&] { drawings::of_lengths<P>(of, samples); });
  };
  CHECK(refused({}, {}) == "of_lengths: expected the length of each sample, got none");
  CHECK(refused({17}, {}) == "of_lengths: 17 at position 0 is not in [0, 16]");
  CHECK(refused(std::vector<int>(13, 1), {}) ==
        "of_lengths: expected at most 6 micro-batches, of 13 samples in all, got 7 of 13");
  CHECK(refused({4, 4}, {3}) ==
        "of_lengths: expected at most 6 micro-batches, of 2 samples in all, got 1 of 3");
  CHECK(refused({16, 16, 4}, {3}) ==
        "of_lengths: micro-batch 0 has 3 samples with 36 rows, and there is room for 16 with 32");
}

TEST_CASE("the problem of a pipeline with lengths says what they take", "[report]") {
  using P = Texts<512, Lengths<>>;
  std::string const text = explain_problem<P>(), padded_text = explain_problem<Texts<512>>();
  detail::problem_reader reader(text, "a file");
  auto const problem = reader.read();
  REQUIRE(reader.lengths() != nullptr);
  auto const& room = reader.lengths()->room;
  CHECK(room.context == 512);
  CHECK(room.each == 4);
  CHECK(room.micro_batches == 16);
  CHECK(room.of_micro_batch.rows == 2048);
  CHECK(room.of_micro_batch.samples == 32);
  CHECK(room.of_micro_batch.block == 8);
  // Two products of scores in F and five in B, of half of the keys: 4 samples of a block.
  auto const& squares = reader.lengths()->squares;
  REQUIRE(squares.size() == 4);
  constexpr double flops = 4. * 512 * 512 * 96;
  for (std::size_t s = 0; s < 4; ++s) {
    CHECK(double(squares[s].forward) == Approx(2 * flops).epsilon(1e-3));
    CHECK(double(squares[s].backward_input) == Approx(5 * flops).epsilon(1e-3));
    CHECK(squares[s].backward_weight == 0);
    CHECK(squares[s].forward < problem.costs[s].forward);
  }
  detail::problem_reader padded(padded_text, "a file");
  padded.read();
  CHECK(padded.lengths() == nullptr);
}
