// SPDX-License-Identifier: BSL-1.0
//
// Gradients of several mini-batches for one step: as one large mini-batch, whatever the schedule.
#include "catch.hpp"

#include <limits>

#include <pipe/weights/copy_weights.hpp>

#include "runtime/trainers.hpp"
#include "train/folder.hpp"

using namespace pp;

TEST_CASE("two mini-batches and a step are one large one", "[runtime]") {
  // Twice as many micro-batches, each divided by twice the terms: a power of two, so not even
  // rounding differs, where labels are equally many.
  using small = tiny::OneRank;
  using large = Pipeline<tiny::Words, PortableHost, AdamW, MicroBatches<2 * small::samples>>;
  small a;
  large b;
  for (int step = 0; step < 3; ++step) {
    laws::sample_batch<large> data(7 + std::uint64_t(step));
    std::size_t const half = data.inputs.size() / 2;
    for (std::size_t i = 0; i < data.labels.size(); ++i) data.labels[i] = data.inputs[i];
    auto const part = [&](std::size_t from) {
      return typename small::batch{std::span(data.inputs).subspan(from, half),
                                   std::span(data.labels).subspan(from, half)};
    };
    CHECK(a.accumulated() == 0);
    a.accumulate(part(0));
    CHECK(a.accumulated() == 1);
    CHECK(a.steps() == step);
    auto const x = a.step(part(half));
    auto const y = b.step(data.view());
    CHECK(a.accumulated() == 0);
    CHECK(a.steps() == step + 1);
    CHECK(x.loss == Approx(y.loss).epsilon(1e-12));
    CHECK(x.gradient_norm == Approx(y.gradient_norm).epsilon(1e-12));
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
  }
}

TEST_CASE("accumulation gives the bits of one stage", "[runtime]") {
  using one = tiny::OneRank;
  using many = tiny::DownAndUp;
  one a({.clip_value = 0.05, .clip_norm = 0.1});
  many b({.clip_value = 0.05, .clip_norm = 0.1});
  for (int step = 0; step < 2; ++step) {
    for (int i = 0; i < 3; ++i) {
      laws::sample_batch<one> const data(std::uint64_t(10 * step + i));
      long const samples = i == 1 ? 3 : 5;  // also fewer samples than planned
      auto const x = i < 2 ? a.accumulate(data.view(samples)) : a.step(data.view(samples));
      auto const y =
          i < 2 ? b.accumulate(data.view<many>(samples)) : b.step(data.view<many>(samples));
      CHECK(laws::same_bits(x.loss, y.loss));
      CHECK(laws::same_bits(x.gradient_norm, y.gradient_norm));
    }
    CHECK(laws::same_numbers(laws::snapshot(a).values, laws::snapshot(b).values));
  }
}

TEST_CASE("looking between accumulation and step changes nothing, asking for gradients is refused",
          "[runtime]") {
  tiny::DownAndUp plain, curious;
  laws::sample_batch<tiny::DownAndUp> const data(1), more(2);
  plain.accumulate(data.view());
  curious.accumulate(data.view());
  curious.evaluate(more.view());
  CHECK_THROWS_AS(curious.gradients(more.view()), error);
  plain.step(more.view());
  curious.step(more.view());
  CHECK(laws::same_numbers(laws::snapshot(plain).values, laws::snapshot(curious).values));
}

TEST_CASE("a mini-batch that is not finite throws away what was accumulated, and nothing else",
          "[runtime]") {
  tiny::Regression clean, troubled;
  laws::sample_batch<tiny::Regression> const data(3);
  laws::sample_batch<tiny::Regression> bad(4);
  bad.inputs[0] = std::numeric_limits<float>::infinity();
  troubled.accumulate(data.view());
  CHECK_THROWS_WITH(troubled.accumulate(bad.view()), Catch::Contains("with what was accumulated"));
  CHECK(troubled.accumulated() == 0);
  clean.step(data.view());
  troubled.step(data.view());
  CHECK(laws::same_numbers(laws::snapshot(clean).values, laws::snapshot(troubled).values));
}

TEST_CASE("weights from outside throw away what was accumulated", "[runtime]") {
  using Trainer = tiny::Regression;
  temporary_folder const folder;
  laws::sample_batch<Trainer> const data(3), more(4);
  Trainer source({.seed = 9});
  save_weights(source, folder.file("a"));

  auto const trains_as_if_alone = [&](auto replace_weights) {
    Trainer fresh, waiting;
    waiting.accumulate(more.view());
    replace_weights(fresh);
    replace_weights(waiting);
    CHECK(waiting.accumulated() == 0);
    auto const expected = fresh.step(data.view()), found = waiting.step(data.view());
    CHECK(laws::same_bits(found.loss, expected.loss));
    CHECK(laws::same_bits(found.gradient_norm, expected.gradient_norm));
    CHECK(laws::same_numbers(laws::snapshot(fresh).values, laws::snapshot(waiting).values));
  };
  trains_as_if_alone([&](Trainer& t) { load_weights(t, folder.file("a")); });
  trains_as_if_alone([&](Trainer& t) { copy_weights(source, t); });
  trains_as_if_alone([](Trainer& t) {
    t.parameters()[0].values[0] = 0.5f;
    t.parameters_changed();
  });
}

TEST_CASE("a load that is refused keeps what was accumulated", "[runtime]") {
  using Trainer = tiny::Regression;
  temporary_folder const folder;
  laws::sample_batch<Trainer> const data(3), more(4);
  Trainer untouched, refused;
  untouched.accumulate(more.view());
  refused.accumulate(more.view());
  CHECK_THROWS_AS(load_weights(refused, folder.file("none")), file_error);
  CHECK_THROWS_AS(copy_weights(refused, refused), error);
  CHECK(refused.accumulated() == 1);
  untouched.step(data.view());
  refused.step(data.view());
  CHECK(laws::same_numbers(laws::snapshot(untouched).values, laws::snapshot(refused).values));
}
