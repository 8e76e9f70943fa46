// SPDX-License-Identifier: BSL-1.0
//
// The laws of a pipeline over processes. Started by mpirun: see run.py.
#include "mpi/alike.hpp"

#include <limits>
#include <string>

#include <pipe/weights/copy_weights.hpp>
#include <pipe/weights/weights.hpp>

#include "mpi/folder.hpp"
#include "transport/models.hpp"

using namespace pp;
using processes::bytes_of, processes::in_folder;
using test_transports::Shared, test_transports::Small;

TEST_CASE("skips, shared weights and further inputs give the bits of one stage") {
  processes::trains_alike<Small<Shared>, Small<Shared, Between, Stages<8>>>();
}

namespace {

using One = Small<Shared>;
using Many = Small<Shared, Between, Stages<8>>;

struct Heads : Model<Input<3>, Linear<4>, Tanh, Stash<"early">, Linear<4>, Tanh, Linear<4>, Tanh,
                     Linear<4>, Tanh, Linear<2>,
                     Losses<MSE, FurtherLoss<"worth", "early", Linear<5>, Tanh, Linear<1>, MSE>>> {
};

}  // namespace

TEST_CASE("outputs by name are given to all processes") {
  Small<Heads> one({.seed = 3});
  if (Between::processes() > 4) return;
  Small<Heads, Between, Stages<4>> many({.seed = 3});
  laws::sample_batch<Small<Heads>> const data(2);
  for (std::size_t const samples : {8, 3}) {
    auto const inputs = std::span(data.inputs).first(3 * samples);
    std::vector<float> score(2 * samples), worth(samples), same_score(score), same_worth(worth);
    one.forward<"labels", "worth">(inputs, score, worth);
    many.forward<"worth">(inputs, same_worth);
    CHECK(laws::same_numbers(worth, same_worth));
    same_worth.assign(samples, 0);
    many.forward<"worth", "labels">(inputs, same_worth, same_score);
    CHECK(laws::same_numbers(score, same_score));
    CHECK(laws::same_numbers(worth, same_worth));
  }
}

TEST_CASE("the file of weights is that of one process, and each loads its own") {
  One one({.seed = 3});
  Many many({.seed = 3}), other({.seed = 4});
  laws::sample_batch<One> const data(1);
  one.step(data.view());
  many.step(data.view<Many>());
  // Processes write this file one after the other: another of each.
  std::string const own = in_folder("one") + "-" + std::to_string(Between::process());
  save_weights(one, own);
  save_weights(many, in_folder("many"));
  CHECK(bytes_of(own) == bytes_of(in_folder("many")));
  CHECK(load_weights(other, in_folder("many")).loaded.size() == one.parameters().size());
  CHECK(processes::same_values(one, other));
  CHECK(laws::same_bits(one.evaluate(data.view()), other.evaluate(data.view<Many>())));
}
TEST_CASE("what fails in one process fails in all, and changes nothing") {
  Many many({.seed = 3}), same({.seed = 3}), other({.seed = 4});
  CHECK_THROWS_AS(save_weights(many, "/no/such/folder/weights"), file_error);
  save_weights(other, in_folder("other"));
  // The last process is given a file that is not there.
  bool const is_last = Between::process() == Between::processes() - 1;
  CHECK_THROWS_AS(load_weights(many, is_last ? "/no/such/file" : in_folder("other")), error);
  CHECK(processes::same_values(many, same));
  laws::sample_batch<Many> const data(1);
  CHECK(laws::same_bits(many.step(data.view()).loss, same.step(data.view()).loss));
}

namespace {

template <class... More>
using Averaged = Small<Shared, Averaging<1, 2>, More...>;

/// The text of the exception that a call throws.
template <class Error, class Call>
std::string text_of(Call call) {
  try {
    call();
  } catch (Error const& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace

TEST_CASE("accumulation and clipping give the bits of one stage") {
  for (double const by_value : {0.0, 0.01}) {
    One one({.seed = 3, .clip_value = by_value, .clip_norm = 0.02});
    Many many({.seed = 3, .clip_value = by_value, .clip_norm = 0.02});
    for (int step = 0; step < 2; ++step) {
      for (int i = 0; i < 3; ++i) {
        laws::sample_batch<One> const data(std::uint64_t(10 * step + i));
        auto const ours = data.view(One::samples - i);
        auto const theirs = data.view<Many>(One::samples - i);
        auto const a = i < 2 ? one.accumulate(ours) : one.step(ours),
                   b = i < 2 ? many.accumulate(theirs) : many.step(theirs);
        CHECK(laws::same_bits(a.loss, b.loss));
        CHECK(laws::same_bits(a.gradient_norm, b.gradient_norm));
      }
      CHECK(processes::same_parameters(one, many));
    }
  }
}
TEST_CASE("averages are those of one stage, and stand in for the parameters") {
  Averaged<> one({.seed = 3});
  Averaged<Between, Stages<8>> many({.seed = 3});
  laws::sample_batch<One> const data(1);
  auto const ours = data.view<Averaged<>>();
  auto const theirs = data.view<Averaged<Between, Stages<8>>>();
  for (int step = 0; step < 3; ++step) one.step(ours), many.step(theirs);
  one.swap_averages();
  many.swap_averages();
  CHECK(processes::same_values(one, many));
  CHECK(laws::same_bits(one.evaluate(ours), many.evaluate(theirs)));
  CHECK_THROWS_AS(many.step(theirs), error);
  one.swap_averages();
  many.swap_averages();
  CHECK(laws::same_bits(one.step(ours).loss, many.step(theirs).loss));
}
TEST_CASE("weights are copied between trainers, wherever their ranks are") {
  Averaged<> one({.seed = 3}), back({.seed = 4});
  Averaged<Between, Stages<8>> many({.seed = 5});
  laws::sample_batch<One> const data(1);
  for (int step = 0; step < 2; ++step) one.step(data.view<Averaged<>>());
  copy_weights(one, many);
  copy_weights(many, back);
  CHECK(processes::same_values(one, many));
  CHECK(processes::same_values(one, back));
  if (Between::processes() <= 4) {
    // The same stages on half as many ranks.
    Averaged<Between, Stages<8>, Interleaved<2>> other({.seed = 6});
    copy_weights(many, other);
    CHECK(processes::same_values(one, other));
  }
  one.swap_averages();
  many.swap_averages();
  back.swap_averages();
  CHECK(processes::same_values(one, many));
  CHECK(processes::same_values(one, back));
}
TEST_CASE("a number that is too large in one process is refused in all, and nothing is copied") {
  if (Between::processes() > 4) return;
  using Wide = Small<Shared, Between, Stages<4>, FP64>;
  Wide wide({.seed = 3});
  Many many({.seed = 4}), same({.seed = 4});
  auto const all = wide.parameters();
  if (!all.back().values.empty()) all.back().values[0] = 1e300;
  CHECK_THROWS_AS(copy_weights(wide, many), data_error);
  CHECK(processes::same_values(many, same));
  if (!all.back().values.empty()) all.back().values[0] = 1;
  copy_weights(wide, many);
  laws::sample_batch<Many> const data(1);
  CHECK(many.evaluate(data.view()) != same.evaluate(data.view()));
}
TEST_CASE("a step that is not finite is rejected by the text of one process, and changes nothing") {
  using Threads = Small<Shared, Stages<8>>;
  laws::sample_batch<One> const data(1);
  auto const ours = data.view<Threads>();
  auto const theirs = data.view<Many>();
  std::size_t const count = Many().parameters().size();
  for (std::size_t which = 0; which < count; ++which)
    // A parameter that is not finite, and one by which the run overflows.
    for (float const wrong : {std::numeric_limits<float>::quiet_NaN(), 3e38f}) {
      Threads threads({.seed = 3});
      Many many({.seed = 3});
      auto const write = [&](float number) {
        for (auto const& p : {threads.parameters()[which], many.parameters()[which]})
          for (float& x : p.values.first(p.values.empty() ? 0 : 2)) x = number;
        threads.parameters_changed();
        many.parameters_changed();
      };
      INFO("parameter " << which << ": " << wrong);
      write(wrong);
      std::string const why = text_of<not_finite>([&] { threads.step(ours); });
      CHECK(text_of<not_finite>([&] { many.step(theirs); }) == why);
      write(0.25f);
      CHECK(laws::same_bits(threads.step(ours).loss, many.step(theirs).loss));
      CHECK(processes::same_values(threads, many));
    }
}
TEST_CASE("what one process can see to be wrong is an error in all, and breaks nothing") {
  One one({.seed = 3});
  Many many({.seed = 3});
  laws::sample_batch<One> const data(1);
  auto wrong = data.view<Many>();
  wrong.labels = wrong.labels.first(3);
  CHECK_THROWS_AS(many.step(wrong), data_error);
  CHECK_THROWS_AS(many.step(data.view<Many>(), -1), data_error);
  CHECK(laws::same_bits(one.step(data.view()).loss, many.step(data.view<Many>()).loss));
}
