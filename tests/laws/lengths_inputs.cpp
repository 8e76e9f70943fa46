// SPDX-License-Identifier: BSL-1.0
//
// Lengths with several inputs: each input of token ids has lengths of its own, or those of the
// input with whose rows its own are joined; attention has queries of one input and keys of another;
// labels and weights of several losses are by position or by sample. The results have the bits of
// the same samples padded to the contexts in a pipeline without the option.
#include "catch.hpp"

#include <cstring>
#include <random>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/schedule/catalog/families.hpp>

#include "poisoned.hpp"

using namespace pp;

namespace {

constexpr int words = 17, context = 24, answers = 13, answer_context = 16, patches = 6, wide = 5;

using Think = Residual<LayerNorm, Linear<20>, GELU, Linear<12>>;
template <class... Last>
struct Answering
    : Model<Tokens<words, context>, Embedding<12>, Positions,
            Repeat<2, Residual<LayerNorm, Attention<3, NotCausal>>, Think>, LayerNorm,
            Stash<"asked">, Named<"answer", Tokens<answers, answer_context>>, Embedding<12>,
            Dropout<1, 10>, Positions,
            Repeat<2, Residual<LayerNorm, Attention<3>>,
                   Residual<LayerNorm, CrossAttention<3, "asked">, Dropout<1, 10>>, Think>,
            LayerNorm, Last...> {};
/// A decoder that attends to an encoder.
struct Answer : Answering<Linear<answers>, With<CrossEntropy, LabelSmoothing<1, 10>>> {};
/// The same, with one row of each sample, joined with two inputs of numbers.
struct Graded : Answering<MeanPool, ConcatOf<Identity, Named<"age", Input<3>>>, Linear<8>, GELU,
                          ConcatOf<Identity, Named<"more", Input<2>>>, Linear<3>, CrossEntropy> {};
/// Three inputs, of which the last attends to both others.
struct Third : Model<Tokens<words, context>, Embedding<12>, Stash<"one">,
                     Named<"answer", Tokens<answers, answer_context>>, Embedding<12>,
                     Residual<LayerNorm, CrossAttention<3, "one", KeyValueHeads<1>>>, Stash<"two">,
                     Named<"third", Tokens<answers, 8>>, Embedding<12>, Positions, Dropout<1, 10>,
                     Residual<LayerNorm, CrossAttention<2, "two", SoftCap<5>>>,
                     Residual<LayerNorm, CrossAttention<3, "one">>, Linear<answers>, CrossEntropy> {
};
/// Words attend to all patches of an image.
struct Caption : Model<Input<patches, wide>, Linear<12>, Stash<"image">,
                       Named<"answer", Tokens<answers, answer_context>>, Embedding<12>, Positions,
                       Repeat<2, Residual<LayerNorm, Attention<3>>,
                              Residual<LayerNorm, CrossAttention<3, "image">>, Think>,
                       Linear<answers>, CrossEntropy> {};
/// A fixed number of rows attends to the words.
struct Summary : Model<Tokens<words, context>, Embedding<12>, Positions, Stash<"text">,
                       Named<"rows", Input<patches, wide>>, Linear<12>,
                       Repeat<2, Residual<LayerNorm, CrossAttention<3, "text">>, Think>, MeanPool,
                       Linear<2>, MSE> {};

/// Words and their types, with a loss of each position, whose rows have weights, and one of each
/// sample.
struct Typed
    : Model<Tokens<words, context>, Embedding<12>, Stash<"word">, Named<"type", Tokens<3, context>>,
            Embedding<12>, Pop<"word">, Positions, Residual<LayerNorm, Attention<3, NotCausal>>,
            Think, LayerNorm, Stash<"rows">, Linear<words>,
            Losses<
                With<CrossEntropy, Weights<"weight">>,
                FurtherLoss<"next", "rows", LossWeight<1, 2>, MeanPool, Linear<2>, CrossEntropy>>> {
};
/// An encoder whose words are tagged, and a decoder: a loss of each.
struct Tagged
    : Model<Tokens<words, context>, Embedding<12>, Positions,
            Residual<LayerNorm, Attention<3, NotCausal>>, Stash<"asked">,
            Named<"answer", Tokens<answers, answer_context>>, Embedding<12>, Positions,
            Residual<LayerNorm, CrossAttention<3, "asked">>, Dropout<1, 10>, Think, Linear<answers>,
            Losses<CrossEntropy,
                   FurtherLoss<"tags", "asked", Linear<5>, With<CrossEntropy, Weights<"sure">>>>> {
};

/// Samples of drawn lengths, padded and one behind the other.
template <class M>
struct samples_of {
  struct tokens {
    std::vector<int> padded, dense, lengths;
  };
  struct reals {
    std::vector<float> padded, dense;
  };
  static constexpr auto const& inputs = detail::model_tables<M>::inputs;
  using label = std::conditional_t<M::labels_are_ids, int, float>;
  static constexpr int loss_axis = M::graph.loss().axis;

  tokens ids[detail::max_inputs];
  reals numbers[detail::max_inputs];
  std::vector<label> padded_labels, dense_labels;

  samples_of(unsigned seed, int samples) {
    std::mt19937 random(seed);
    auto const draw = [&](int n) { return int(random() % unsigned(n)); };
    for (int i = 0; i < inputs.size(); ++i) {
      auto const& in = inputs[i];
      int const longest = int(in.form.elements());
      bool const is_axis = detail::is_axis(in, i);
      for (int s = 0; s < samples; ++s) {
        int const usual[] = {
            1, 7, 8, longest / 2 + 1, longest, longest, 1 + draw(longest), 1 + draw(longest)};
        // A sample may have no row in one input, and some in the other.
        if (is_axis) ids[i].lengths.push_back(s == 3 + i && seed % 2 == 0 ? 0 : usual[draw(8)]);
        int const n = in.axis == 0 ? longest : ids[in.axis - 1].lengths[std::size_t(s)];
        for (int t = 0; t < longest; ++t) {
          if (!in.is_ids) {
            float const drawn = float(draw(64)) / 32 - (in.of_loss ? 0 : 1);
            numbers[i].padded.push_back(t < n ? drawn : 0);
            if (t < n) numbers[i].dense.push_back(drawn);
            continue;
          }
          // Of words that are joined, some are padding in one input only, also the last one.
          bool const is_left_out =
              is_axis ? t + 1 == n && s % 4 == 1 && is_joined(i) : t + 1 < n && draw(5) == 0;
          int const id = t < n && !is_left_out ? draw(in.vocabulary) : -1;
          ids[i].padded.push_back(id);
          if (t < n) ids[i].dense.push_back(id);
          if (i + 1 != loss_axis) continue;
          label const target = t + 1 < n && draw(6) > 0 ? label(draw(in.vocabulary)) : -1;
          padded_labels.push_back(target);
          if (t < n) dense_labels.push_back(target);
        }
      }
    }
    if constexpr (loss_axis == 0) {
      for (int s = 0; s < samples * int(detail::model_tables<M>::labels); ++s)
        padded_labels.push_back(label(draw(2)));
      dense_labels = padded_labels;
    }
  }
  /// Whether another input of token ids has the positions of input i.
  static bool is_joined(int i) {
    bool any = false;
    for (int k = 0; k < inputs.size(); ++k)
      any = any || (k != i && inputs[k].axis == i + 1 && !inputs[k].of_loss);
    return any;
  }
  /// The samples, of which the inputs in the mask `ragged` lie one behind the other.
  template <class Batch>
  Batch batch(unsigned ragged) const {
    Batch b;
    auto const is_dense = [ragged](int axis) { return axis != 0 && (ragged >> (axis - 1) & 1); };
    b.labels = is_dense(loss_axis) ? dense_labels : padded_labels;
    for (int i = 0; i < inputs.size(); ++i) {
      bool const dense = is_dense(inputs[i].axis);
      auto const& list = dense ? ids[i].dense : ids[i].padded;
      auto const& real = dense ? numbers[i].dense : numbers[i].padded;
      if constexpr (inputs[0].is_ids)
        if (i == 0) b.inputs = list;
      if constexpr (!inputs[0].is_ids)
        if (i == 0) b.inputs = real;
      if (i > 0) b.named_ids[i] = list, b.named_numbers[i] = real;
      if (!dense || !detail::is_axis(inputs[i], i)) continue;
      if (i == 0)
        b.lengths = ids[i].lengths;
      else
        b.named_lengths[i] = ids[i].lengths;
    }
    return b;
  }
};

template <class M, class... Options>
using trainer_of = Pipeline<M, PortableHost, AdamW, MicroBatches<4>, MicroBatchSize<3>, Options...>;

/// The number of an output's elements that differ in both pipelines. count: samples
template <Text Name, class M, class One, class Several>
long differing_outputs(One& padded, Several& dense, samples_of<M> const& of, unsigned ragged,
                       int count) {
  constexpr detail::loss_input from =
      detail::model_tables<M>::loss_inputs[detail::output_number<M, Name>];
  constexpr int axis = from.axis, input = axis == 0 ? 0 : axis - 1;
  constexpr long rows = axis == 0 ? 1 : detail::model_tables<M>::inputs[input].form.elements(),
                 row = from.elements / rows;
  bool const are_rows = axis != 0 && (ragged >> input & 1);
  std::vector<float> expected(std::size_t(count * from.elements)),
      found(are_rows ? of.ids[input].dense.size() * std::size_t(row) : expected.size(), 7.f);
  padded.template forward<Name>(of.template batch<typename One::batch>(0), expected);
  poison(dense);
  dense.template forward<Name>(of.template batch<typename Several::batch>(ragged), found);
  std::size_t at = 0;
  long differ = 0;
  for (int s = 0; s < count; ++s) {
    long const real = axis == 0 ? 1 : of.ids[input].lengths[std::size_t(s)];
    for (long k = 0; k < rows * row; ++k) {
      if (are_rows && k >= real * row) continue;
      float const wanted = k < real * row ? expected[std::size_t(s * rows * row + k)] : 0.f;
      differ += std::memcmp(&wanted, &found[at++], sizeof wanted) != 0;
    }
  }
  CHECK(at == found.size());
  return differ;
}

/// Compares a mini-batch in both pipelines: steps, evaluation, outputs.
template <class M, class One, class Several, Text... Names>
void compare(int steps) {
  One padded({.seed = 5, .clip_norm = 1});
  Several dense({.seed = 5, .clip_norm = 1});
  for (unsigned seed = 1; seed <= unsigned(steps); ++seed) {
    int const count = seed % 3 == 0 ? One::samples - 2 : One::samples;
    samples_of<M> const of(seed, count);
    auto const reference = of.template batch<typename One::batch>(0);
    CHECK(One::loss_terms(reference) ==
          Several::loss_terms(of.template batch<typename Several::batch>(15)));
    for (unsigned ragged : {15u, 0u, 1u, 2u}) {
      auto const given = of.template batch<typename Several::batch>(ragged);
      poison(dense);
      loss_values const x = padded.evaluate_losses(reference), y = dense.evaluate_losses(given);
      for (int i = 0; i < detail::losses_in<typename M::loss>; ++i) CHECK(same(x[i], y[i]));
      poison(dense);
      step_result const g = padded.gradients(reference), h = dense.gradients(given);
      CHECK(same(g.loss, h.loss));
      CHECK(same(g.gradient_norm, h.gradient_norm));
      CHECK(differences(padded, dense) == 0);

      CHECK((differing_outputs<Names>(padded, dense, of, ragged, count) + ... + 0) == 0);
    }
    poison(dense);
    auto const given = of.template batch<typename Several::batch>(seed == 1 ? 0 : 15);
    step_result const a = padded.step(reference), b = dense.step(given);
    CHECK(same(a.loss, b.loss));
    CHECK(same(a.gradient_norm, b.gradient_norm));
    CHECK(differences(padded, dense) == 0);
  }
}

template <class M, class... Options>
void check(int steps = 3) {
  compare<M, trainer_of<M>, trainer_of<M, Lengths<>, Options...>, "labels">(steps);
}

}  // namespace

TEST_CASE("lengths of two inputs keep the bits of padding: an encoder and a decoder", "[laws]") {
  check<Answer>();
  check<Answer, Stages<2>, OneFOneB, RecomputeAll>();
  check<Answer, Stages<3>, ZeroBubbleH1, HostThreads<2>>();
}
TEST_CASE("lengths of two inputs keep the bits of padding: with numbers of each sample", "[laws]") {
  check<Graded, Stages<3>, GPipe>();
}
TEST_CASE("lengths keep the bits of padding: three inputs, accumulated", "[laws]") {
  using Sum = GradientAccumulation<2>;
  compare<Third, trainer_of<Third, Sum>,
          trainer_of<Third, Sum, Lengths<4>, Stages<2>, RecomputeAll>, "labels">(3);
}
TEST_CASE("words of several lengths attend to whole images", "[laws]") {
  check<Caption, Stages<2>, HostThreads<2>>();
}
TEST_CASE("whole rows attend to words of several lengths", "[laws]") {
  check<Summary, Stages<2>>();
}
TEST_CASE("types of words have their lengths, and a loss of samples is beside one of rows",
          "[laws]") {
  static_assert(detail::model_tables<Typed>::inputs[1].axis == 1);
  compare<Typed, trainer_of<Typed>, trainer_of<Typed, Lengths<>, Stages<2>, OneFOneB>, "labels",
          "next">(3);
}
TEST_CASE("losses of rows of two inputs keep the bits of padding", "[laws]") {
  using Dense = trainer_of<Tagged, Lengths<>, Stages<3>, RecomputeAll>;
  compare<Tagged, trainer_of<Tagged>, Dense, "labels", "tags">(3);
  // Predictions in another order are those of one mini-batch.
  Dense trainer({.seed = 5});
  samples_of<Tagged> const of(1, Dense::samples);
  auto const given = of.batch<Dense::batch>(15);
  std::size_t const rows = of.ids[1].dense.size() * answers, tags = of.ids[0].dense.size() * 5;
  std::vector<float> a(rows), b(tags), x(rows), y(tags);
  trainer.forward<"labels", "tags">(given, a, b);
  predict<"labels", "tags">(trainer, given, x, y);
  CHECK(a == x);
  CHECK(b == y);
  CHECK(evaluate_all_losses(trainer, given)[1] ==
        Approx(trainer.evaluate_losses(given)[1]).epsilon(1e-6));
}
TEST_CASE("watched launches have written finite numbers in all rows that are there", "[laws]") {
  trainer_of<Answer, Lengths<>> trainer({.seed = 5});
  auto const of = samples_of<Answer>(1, 10);
  poison(trainer);
  int launches = 0, gradients_of_keys = 0, not_finite = 0;
  trainer.watch(of.batch<decltype(trainer)::batch>(15), [&](launch_seen const& seen) {
    ++launches;
    not_finite += !seen.all_finite();
    for (int k = 0; k < seen.what->count; ++k)
      gradients_of_keys +=
          seen.operands[k].elements > 0 && seen.what->key_axis == 1 && seen.operands[k].axis == 1;
  });
  CHECK(launches > 100);
  CHECK(gradients_of_keys == 2 * 4);  // of each attention and micro-batch
  CHECK(not_finite == 0);
}
