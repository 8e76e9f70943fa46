// SPDX-License-Identifier: BSL-1.0
//
// What is executed is the schedule's table, action by action, at times that agree with it.
#include "catch.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include <pipe/schedule/catalog/families.hpp>

#include "runtime/trainers.hpp"

using namespace pp;
using namespace pp::detail;

namespace {

template <class Trainer>
void executes_its_table() {
  auto const& table = Trainer::compiled::table();
  Trainer trainer;
  laws::sample_batch<Trainer> const data(1);
  for (int step = 0; step < 3; ++step) {
    step_result const result = trainer.step(data.view());
    std::map<std::tuple<bool, int, int>, executed_action>
        made;  // F or input gradient, chunk, micro-batch
    for (int r = 0; r < table.ranks(); ++r) {
      auto const done = trainer.executed(r);
      REQUIRE(int(done.size()) == table.size(r));
      long clock = 0;
      for (int i = 0; i < table.size(r); ++i) {
        executed_action const& e = done[std::size_t(i)];
        CHECK(e.what == table.at(r, i));
        CHECK(e.waited >= 0);
        CHECK(e.start - e.waited >= clock);
        CHECK(e.end >= e.start);
        clock = e.end;
        if (e.what.kind == schedules::action_kind::forward || makes_input_gradient(e.what.kind))
          made[{e.what.kind == schedules::action_kind::forward, e.what.chunk, e.what.micro_batch}] =
              e;
      }
      CHECK(double(clock) * 1e-9 <= result.seconds);
    }
    // A reader starts after the maker has started to make what it reads (and published it, a moment
    // before its own end).
    for (auto const& [key, e] : made) {
      auto const [forward, chunk, mb] = key;
      auto const maker = made.find({forward, forward ? chunk - 1 : chunk + 1, mb});
      if (maker != made.end()) CHECK(maker->second.start <= e.start);
      if (!forward) CHECK(made.at({true, chunk, mb}).end <= e.start);
    }
    CHECK(result.bubble >= 0);
    CHECK(result.bubble <= 1);
  }
  trainer.evaluate(data.view());
  for (int r = 0; r < table.ranks(); ++r) {
    auto const done = trainer.executed(r);
    CHECK(int(done.size()) ==
          Trainer::compiled::micro_batches * Trainer::compiled::schedule::chunks_per_rank);
    for (executed_action const& e : done) CHECK(e.what.kind == schedules::action_kind::forward);
  }
}

}  // namespace

TEST_CASE("the executed order is the schedule's", "[runtime]") {
  executes_its_table<tiny::OneRank>();
  executes_its_table<tiny::SevenRanks>();
  executes_its_table<tiny::LateWeights>();
  executes_its_table<tiny::TwoChunks>();
  executes_its_table<tiny::DownAndUp>();
}
template <class Schedule, class... Cut>
void waits_within_its_time() {
  // The stages of tiny::Regression.
  using Trainer = Pipeline<tiny::Numbers, PortableHost, SGD, MicroBatches<2>, MicroBatchSize<2>,
                           Schedule, Cut...>;
  Trainer trainer;
  laws::sample_batch<Trainer> const data(1);
  double worst = 0, least = 1;
  long steps = 0;
  trainer.train(std::vector(300, data.view()), [&](step_result const& r) {
    worst = std::max(worst, r.bubble), least = std::min(least, r.bubble), ++steps;
  });
  constexpr int ranks = Trainer::plan.rank_count;
  INFO(Trainer::plan().schedule << " on " << ranks << " ranks");
  CHECK(steps == 300);
  CHECK(worst <= 1);
  CHECK(least >= 0);
  CHECK((ranks == 1 || worst > 0));
}
TEST_CASE("ranks wait for a share of their time, also where steps overlap", "[runtime]") {
  waits_within_its_time<OneFOneB, Stages<3>, Cut<2, 3>>();
  waits_within_its_time<Steady<OneFOneB>, Stages<3>, Cut<2, 3>>();
  waits_within_its_time<PipeDream<>, Stages<3>, Cut<2, 3>>();
  waits_within_its_time<PipeDream2BW<>, Stages<3>, Cut<2, 3>>();
  waits_within_its_time<PACI<>>();
}
