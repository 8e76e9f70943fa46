// SPDX-License-Identifier: BSL-1.0
//
// What works on a whole data set: mini-batches, the loss and the outputs on it; and what
// classifiers are judged by.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/train/batches.hpp>

#include "message_of.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

/// Numbers, ids by name, and a class: every kind of list a batch has.
struct Net : Model<Named<"numbers", Input<1, 2>>, Linear<3>, Stash<"of numbers">,
                   Named<"ids", Tokens<50, 1>>, Embedding<3>, Pop<"of numbers">, Tanh, Linear<3>,
                   CrossEntropy> {};
using Classifier = Pipeline<Net, Stages<2>, MicroBatches<2>, MicroBatchSize<2>, PortableHost>;
static_assert(Classifier::samples == 4);

/// Sample i has the numbers i and -i, the id i, and a class; about every fourth class is -1.
struct data {
  std::vector<float> numbers;
  std::vector<int> ids, classes;
  explicit data(int n) {
    for (int i = 0; i < n; ++i) {
      numbers.insert(numbers.end(), {float(i), -float(i)});
      ids.push_back(i);
      classes.push_back(i * i % 7 % 4 - 1);
    }
  }
  Classifier::batch view() const {
    Classifier::batch b{numbers, classes};
    return b.set<"ids">(ids);
  }
};

/// Which samples a mini-batch holds; each of its lists has to say the same.
std::vector<int> samples_of(Classifier::batch const& b) {
  std::vector<int> samples(b.named_ids[1].begin(), b.named_ids[1].end());
  REQUIRE(b.inputs.size() == 2 * samples.size());
  REQUIRE(b.labels.size() == samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    CHECK(b.inputs[2 * i] == float(samples[i]));
    CHECK(b.inputs[2 * i + 1] == -float(samples[i]));
    CHECK(b.labels[i] == samples[i] * samples[i] % 7 % 4 - 1);
  }
  return samples;
}

std::vector<std::vector<int>> all_of(data const& d, batch_settings const& s) {
  std::vector<std::vector<int>> all;
  for (auto const& b : batches<Classifier>(d.view(), s)) all.push_back(samples_of(b));
  return all;
}

std::vector<int> in_a_row(std::vector<std::vector<int>> const& all) {
  std::vector<int> one;
  for (auto const& b : all) one.insert(one.end(), b.begin(), b.end());
  return one;
}

std::vector<int> ascending(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Rows and classes weigh.
struct WeighsBoth
    : Model<Input<2>, Linear<2>, With<CrossEntropy, Weights<"weight">, ClassWeights<3, 5>>> {};

/// Two classes apart by a line.
struct Line : Model<Input<2>, Linear<2>, CrossEntropy> {};
struct points {
  std::vector<float> where;
  std::vector<int> side;
  points(int n, std::uint64_t stream) {
    for (int i = 0; i < n; ++i) {
      detail::philox_block const bits = math::random_block(1, stream, std::uint64_t(i));
      where.insert(where.end(),
                   {math::unit_uniform(bits.word[0]), math::unit_uniform(bits.word[1])});
      side.push_back(where[2 * std::size_t(i)] > where[2 * std::size_t(i) + 1]);
    }
  }
};

/// Steps `done` + 1 to `end`, over as many epochs as that takes.
template <class Trainer>
void train_on(Trainer& trainer, typename Trainer::batch const& data, long done, long end) {
  // [resume]
  for (long const per_epoch = batches<Trainer>(data).size(); done < end;)
    for (auto const& batch : batches<Trainer>(
             data,
             {.shuffle = true, .seed = 1, .epoch = done / per_epoch, .first = done % per_epoch})) {
      trainer.step(batch);
      if (++done == end) break;
    }
  // [/resume]
}

}  // namespace

TEST_CASE("every sample of a data set is in one mini-batch, with all that belongs to it") {
  for (int n = 1; n <= 13; ++n)
    for (bool const shuffle : {false, true}) {
      auto const all = all_of(data(n), {.shuffle = shuffle, .seed = 3});
      REQUIRE(all.size() == std::size_t(n + 3) / 4);
      for (std::size_t i = 0; i + 1 < all.size(); ++i) CHECK(all[i].size() == 4);
      auto samples = in_a_row(all);
      if (shuffle) std::sort(samples.begin(), samples.end());
      CHECK(samples == ascending(n));
    }
}

TEST_CASE("without a shuffle mini-batches are read where they are") {
  data const d(6);
  auto view = d.view();
  batches<Classifier> all(view);
  auto at = all.begin();
  CHECK((*at).inputs.data() == d.numbers.data());
  CHECK((*++at).labels.data() == d.classes.data() + 4);
  CHECK(all.size() == 2);
  CHECK(++at == all.end());
  CHECK((*all.begin()).labels.data() == d.classes.data());
}

TEST_CASE("the order of an epoch is a function of its number and the seed") {
  data const d(40);
  auto const order = all_of(d, {.shuffle = true, .seed = 1, .epoch = 2});
  CHECK(all_of(d, {.shuffle = true, .seed = 1, .epoch = 2}) == order);
  CHECK(all_of(d, {.shuffle = true, .seed = 1, .epoch = 3}) != order);
  CHECK(all_of(d, {.shuffle = true, .seed = 2, .epoch = 2}) != order);
  SECTION("and training goes on in the middle of it") {
    for (long first = 0; first <= 10; ++first)
      CHECK(all_of(d, {.shuffle = true, .seed = 1, .epoch = 2, .first = first}) ==
            std::vector(order.begin() + first, order.end()));
  }
}

TEST_CASE("every order is as likely as every other") {
  std::map<std::vector<std::size_t>, int> times;
  constexpr int draws = 24000;
  for (int epoch = 0; epoch < draws; ++epoch) ++times[shuffled_order(4, 7, std::uint64_t(epoch))];
  REQUIRE(times.size() == 24);
  double square = 0;
  for (auto const& [order, n] : times)
    square += (n - draws / 24.0) * (n - draws / 24.0) / (draws / 24.0);
  CHECK(square < 49.7);  // chi-squared with 23 degrees of freedom: one in a thousand is larger
}

TEST_CASE("an epoch goes on at a sample, in mini-batches of another size") {
  data const d(23);
  auto const order = [&](long epoch) {
    return in_a_row(all_of(d, {.shuffle = true, .seed = 3, .epoch = epoch}));
  };
  for (int const size : {1, 4, 6, 23, 30})
    for (int const next : {1, 3, 4, 30})
      for (long const steps : {0, 1, 2, 4, 5, 6}) {
        batches<Classifier> begun(d.view(), {.shuffle = true, .seed = 3, .samples = size});
        std::vector<int> seen;
        long done = 0;
        for (auto const& batch : begun) {
          if (done++ == steps) break;
          auto const samples = samples_of(batch);
          seen.insert(seen.end(), samples.begin(), samples.end());
        }
        long const position = long(seen.size());
        batches<Classifier> rest(
            d.view(), {.shuffle = true, .seed = 3, .samples = next, .sample_position = position});
        CHECK(rest.epoch() == position / 23);
        CHECK(rest.sample_position() == position);
        if (position == 23) continue;  // the next epoch
        std::size_t most = 0;
        for (auto const& batch : rest) {
          auto const samples = samples_of(batch);
          seen.insert(seen.end(), samples.begin(), samples.end());
          CHECK(rest.sample_position() == long(seen.size()));
          most = std::max(most, samples.size());
        }
        CHECK(most == std::min(std::size_t(next), std::size_t(23 - position)));
        CHECK(seen == order(0));
      }
  batches<Classifier> second(d.view(), {.shuffle = true, .seed = 3, .sample_position = 23 + 5});
  std::vector<int> seen;
  for (auto const& batch : second) seen.push_back(samples_of(batch)[0]);
  CHECK(seen[0] == order(1)[5]);
  CHECK(second.sample_position() == 46);
  CHECK_THROWS_AS(second.position(), data_error);
  CHECK(batches<Classifier>(d.view(), {.sample_position = 23 + 8}).position() == 6 + 2);

  // What drop_last omits has been reached at the end of the epoch.
  batches<Classifier> whole(d.view(), {.drop_last = true, .sample_position = 10});
  CHECK(whole.size() == 5);
  long number = 0;
  for (auto const& batch : whole) CHECK(samples_of(batch).front() == 10 + 4 * number++);
  CHECK(number == 3);
  CHECK(whole.sample_position() == 23);
  batches<Classifier> none(d.view(), {.drop_last = true, .sample_position = 20});
  CHECK(none.epoch() == 1);
  CHECK(none.sample_position() == 23);
}

TEST_CASE("an epoch goes on at a position over all epochs") {
  data const d(11);  // three mini-batches
  batches<Classifier> second(d.view(), {.shuffle = true, .seed = 3, .epoch = 1});
  CHECK(second.position() == 3);
  std::vector<std::vector<int>> all;
  for (auto const& batch : second) {
    all.push_back(samples_of(batch));
    CHECK(second.position() == 3 + long(all.size()));
  }
  CHECK(second.position() == 6);
  for (long position : {3, 4, 5}) {
    batches<Classifier> rest(d.view(), {.shuffle = true, .seed = 3, .position = position});
    CHECK(rest.epoch() == 1);
    CHECK(rest.position() == position);
    for (auto const& batch : rest) CHECK(samples_of(batch) == all[std::size_t(position++ - 3)]);
    CHECK(position == 6);
  }
  batches<Classifier> third(d.view(), {.position = 6});
  CHECK(third.epoch() == 2);
  CHECK((*third.begin()).inputs.data() == d.numbers.data());
}

TEST_CASE("a short last mini-batch is left out on demand") {
  CHECK(in_a_row(all_of(data(11), {.drop_last = true})) == ascending(8));
  CHECK(in_a_row(all_of(data(12), {.drop_last = true})) == ascending(12));
}

TEST_CASE("replicas share larger mini-batches") {
  data const d(22);
  auto const lengths = [&](batch_settings const& s) {
    std::vector<std::size_t> all;
    for (auto const& batch : batches<Classifier>(d.view(), s)) all.push_back(batch.labels.size());
    return all;
  };
  CHECK(lengths({}) == std::vector<std::size_t>{4, 4, 4, 4, 4, 2});
  CHECK(lengths({.samples = 8}) == std::vector<std::size_t>{8, 8, 6});
  CHECK(lengths({.first = 1, .drop_last = true, .samples = 8}) == std::vector<std::size_t>{8});
  CHECK(batches<Classifier>(d.view(), {.samples = 8}).size() == 3);
}

TEST_CASE("data sets that are none are refused") {
  data const d(6), short_one(5);
  auto const refused = [](Classifier::batch const& b, batch_settings const& s = {}) {
    return message_of([&] { batches<Classifier> all(b, s); });
  };
  CHECK(refused(d.view()) == "no error");
  CHECK(refused(Classifier::batch{d.numbers, short_one.classes}.set<"ids">(d.ids)) ==
        "labels: expected 6 numbers for 6 samples, got 5");
  CHECK(refused(Classifier::batch{d.numbers, d.classes}) ==
        "input \"ids\": expected 6 numbers for 6 samples, got 0");
  CHECK(refused(Classifier::batch{std::span(d.numbers).first(11), d.classes}.set<"ids">(d.ids)) ==
        "inputs: expected whole samples of 2 numbers, got 11");
  CHECK(refused(data(0).view()) ==
        "batches: expected a data set of at least 1 samples for a mini-batch, got 0");
  CHECK(refused(data(3).view(), {.drop_last = true}) ==
        "batches: expected a data set of at least 4 samples for a whole mini-batch, got 3");
  CHECK(refused(d.view(), {.first = 3}) == "batches: first: mini-batch 3 is not in [0, 2]");
  CHECK(refused(d.view(), {.first = -1}) == "batches: first: mini-batch -1 is not in [0, 2]");
  std::string const sample_position =
      "batches: sample_position: expected 0 or more, without epoch, first and position, got ";
  CHECK(refused(d.view(), {.sample_position = -1}) == sample_position + "-1");
  CHECK(refused(d.view(), {.position = 1, .sample_position = 4}) == sample_position + "4");
  std::string const position =
      "batches: position: expected 0 or more, without epoch and first, got ";
  CHECK(refused(d.view(), {.position = -1}) == position + "-1");
  CHECK(refused(d.view(), {.first = 1, .position = 1}) == position + "1");
  CHECK(refused(d.view(), {.samples = -1}) == "batches: samples: expected 0 or more, got -1");
  CHECK(refused(d.view(), {.epoch = -1}) == "batches: epoch: expected 0 or more, got -1");
  // A position of a file that is damaged.
  constexpr long most = std::numeric_limits<long>::max();
  std::string const beyond = " of 6 samples is beyond all places that can be counted";
  CHECK(refused(d.view(), {.sample_position = most}) ==
        "batches: epoch 1537228672809129301" + beyond);
  CHECK(refused(d.view(), {.position = most}) == "batches: epoch 4611686018427387903" + beyond);
  CHECK(refused(d.view(), {.epoch = most}) == "batches: epoch 9223372036854775807" + beyond);
  CHECK(refused(d.view(), {.sample_position = most - 18}) == "no error");
}

TEST_CASE(
    "any number of samples is predicted as one by one, and the loss is the mean over the labels "
    "that count") {
  Classifier trainer({.seed = 5});
  for (int const n : {1, 4, 11}) {
    data const d(n);
    std::vector<float> const outputs = predict(trainer, d.view());
    REQUIRE(outputs.size() == std::size_t(3 * n));
    double loss = 0, terms = 0;
    for (int i = 0; i < n; ++i) {
      std::array<float, 3> alone;
      std::size_t const at = std::size_t(i);
      trainer.forward(Classifier::batch{std::span(d.numbers).subspan(2 * at, 2), {}}.set<"ids">(
                          std::span(d.ids).subspan(at, 1)),
                      alone);
      CHECK(std::equal(alone.begin(), alone.end(), outputs.begin() + 3 * i));
      if (d.classes[at] < 0) continue;
      double sum = 0;
      for (float const x : alone) sum += std::exp(double(x));
      loss += std::log(sum) - double(alone[std::size_t(d.classes[at])]);
      ++terms;
    }
    double const all = evaluate_all(trainer, d.view());
    CHECK((terms > 0 ? all == Approx(loss / terms).epsilon(1e-6) : std::isnan(all)));
  }
  data const d(6);
  std::vector<float> outputs(17);
  CHECK(message_of([&] { predict(trainer, d.view(), outputs); }) ==
        "outputs: expected 18 numbers, got 17");
  CHECK(predict(trainer, data(0).view()).empty());
  CHECK(message_of([&] { predict(trainer, d.numbers); }) ==
        "input \"ids\": expected 6 numbers for 6 samples, got 0");
}

TEST_CASE("a row of scores stands for its largest, the first of equal ones") {
  CHECK(argmax(std::vector{1.f, 3.f, 2.f, 3.f}) == 1);
  CHECK(argmax(std::vector{-std::numeric_limits<double>::infinity(), -2.0}) == 1);
  CHECK(argmax(std::vector{0.f, -0.f}) == 0);
  CHECK(message_of([] { argmax(std::vector{1.f, std::nanf("")}); }) ==
        "argmax: score 1 of 2 is not a number");
  CHECK(message_of([] { argmax(std::vector{std::nan(""), 1.0}); }) ==
        "argmax: score 0 of 2 is not a number");
  CHECK(message_of([] { argmax(std::span<float const>()); }) ==
        "argmax: expected at least 1 score, got none");
}

TEST_CASE("accuracy and confusion count labels that are not -1") {
  std::vector<float> const outputs{0, 1, 2,  //
                                   5, 5, 1,  //
                                   1, 2, 0,  //
                                   9, 0, 0,  //
                                   0, 1, 0};
  std::vector<int> const labels{2, 1, 1, -1, 0};
  CHECK(accuracy(outputs, labels) == 0.5);
  confusion_matrix const m = confusion(outputs, labels, 3);
  CHECK(m.counts == std::vector<long>{0, 1, 0, 1, 1, 0, 0, 0, 1});
  CHECK(m(1, 0) == 1);
  CHECK(m.total() == 4);
  CHECK(m.right() == 2);
  CHECK(accuracy(std::vector{0.0, 1.0}, std::vector{1}) == 1);
  CHECK(confusion(std::vector<double>(), std::vector<int>(), 2).total() == 0);
}

TEST_CASE("a class that does not exist is refused") {
  confusion_matrix const m = confusion(std::vector<double>{0, 1}, std::vector{1}, 2);
  for (int const none : {-1, 2, std::numeric_limits<int>::max()}) {
    std::string const why = "class " + std::to_string(none) + " is not in [0, 2)";
    CHECK(message_of([&] { m(none, 0); }) == why);
    CHECK(message_of([&] { m(0, none); }) == why);
  }
  std::vector<float> const outputs(6);
  CHECK(
      message_of([&] { confusion(outputs, std::vector{0, 1}, std::numeric_limits<int>::max()); }) ==
      "outputs: expected an equal number of scores for each label, got 6 scores for 2 labels");
}

TEST_CASE("labels and weights that a loss does not count are refused by whatever counts them") {
  using trainer_type = Pipeline<WeighsBoth, MicroBatchSize<4>, PortableHost>;
  trainer_type trainer;
  std::vector<float> const inputs(12), weights{1, 2, 3, 4, 5, 6};
  std::vector<int> labels{0, 1, -1, 1, 0, 1};
  auto const data = [&](std::size_t count) {
    return trainer_type::batch{inputs, labels}.set<"weight">(std::span(weights).first(count));
  };
  CHECK(trainer_type::loss_terms(data(6)) == 3 * (1 + 5) + 5 * (2 + 4 + 6));
  CHECK(message_of([&] { trainer_type::loss_terms(data(5)); }) ==
        "input \"weight\": expected 6 numbers, got 5");
  CHECK(message_of([&] { trainer_type::loss_terms(trainer_type::batch{inputs, labels}); }) ==
        "input \"weight\": expected 6 numbers, got 0");
  for (int const none : {-2, 2, 1000000000}) {
    labels[5] = none;
    std::string const why = "label " + std::to_string(none) + " at position ";
    CHECK(message_of([&] { trainer_type::loss_terms(data(6)); }) == why + "5 is not in [-1, 2)");
    CHECK(message_of([&] { evaluate_all(trainer, data(6)); }) == why + "1 is not in [-1, 2)");
  }
}

TEST_CASE("an iterator that is moved beyond the end stays there") {
  data const d(6);
  batches<Classifier> all(d.view());
  auto it = all.begin();
  for (int i = 0; i < 5; ++i) ++it;
  CHECK(it == all.end());
}

TEST_CASE("what accuracy cannot count it refuses") {
  auto const refused = [](std::vector<float> const& outputs, std::vector<int> const& labels) {
    std::string const of_accuracy = message_of([&] { accuracy(outputs, labels); });
    if (of_accuracy.find("accuracy:") == std::string::npos)
      CHECK(message_of([&] { confusion(outputs, labels, int(outputs.size() / labels.size())); }) ==
            of_accuracy);
    return of_accuracy;
  };
  CHECK(refused({1, 2, 3}, {0, 1}) ==
        "outputs: expected at least 2 scores for each label, got 3 scores for 2 labels");
  CHECK(refused({1, 2, 3, 4, 5}, {0, 1}) ==
        "outputs: expected an equal number of scores for each label, got 5 scores for 2 labels");
  CHECK(refused({1, 2}, {0, 0}) ==
        "outputs: expected at least 2 scores for each label, got 2 scores for 2 labels");
  CHECK(refused({1, 2}, {2}) == "label 2 at position 0 is not in [-1, 2)");
  CHECK(refused({1, 2, 1, 2}, {0, -2}) == "label -2 at position 1 is not in [-1, 2)");
  CHECK(refused({1, std::nanf("")}, {0}) == "argmax: score 1 of 2 is not a number");
  CHECK(refused({1, 2}, {-1}) ==
        "accuracy: expected at least 1 label other than -1, got none of 1");
  CHECK(message_of([] { accuracy(std::vector<float>(), std::vector<int>()); }) ==
        "outputs: expected at least 2 scores for each label, got 0 scores for 0 labels");
  CHECK(message_of([] { confusion(std::vector{1.f, 2.f}, std::vector{0}, -3); }) ==
        "outputs: expected at least 2 scores for each label, got 2 scores for 1 labels");
}

TEST_CASE("the page about data sets does what it says") {
  using Trainer = Pipeline<Line, MicroBatches<4>, MicroBatchSize<4>, Adam, PortableHost>;
  points const train(1000, 1), held_out(101, 2);
  Trainer::settings const settings{.seed = 1, .optimizer = {.learning_rate = 0.01}};
  Trainer trainer(settings);
  // [epochs]
  for (long epoch = 0; epoch < 10; ++epoch)
    for (auto const& batch :
         batches<Trainer>({train.where, train.side}, {.shuffle = true, .seed = 1, .epoch = epoch}))
      trainer.step(batch);
  double const loss = evaluate_all(trainer, {held_out.where, held_out.side});
  // [/epochs]
  // [judge]
  std::vector<float> const scores = predict(trainer, held_out.where);
  double const share = accuracy(scores, held_out.side);
  confusion_matrix const of = confusion(scores, held_out.side, 2);
  double const precision = double(of(1, 1)) / double(of(0, 1) + of(1, 1));
  double const recall = double(of(1, 1)) / double(of(1, 0) + of(1, 1));
  // [/judge]
  CHECK(loss < 0.4);
  CHECK(share > 0.9);
  CHECK(share == double(of.right()) / 101);
  CHECK(precision > 0.8);
  CHECK(recall > 0.8);

  Trainer resumed(settings);
  train_on(resumed, {train.where, train.side}, 0, 100);
  train_on(resumed, {train.where, train.side}, 100, 630);
  CHECK(trainer.steps() == 630);
  CHECK(evaluate_all(resumed, {held_out.where, held_out.side}) == loss);
}
