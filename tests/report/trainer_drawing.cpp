// SPDX-License-Identifier: BSL-1.0
//
// A pipeline's plan and its last run, drawn.
#include <vector>

#include <catch2/catch.hpp>

#include <pipe/pipe.hpp>
#include <pipe/report/trainer_drawing.hpp>

namespace {

struct Small : pp::Model<pp::Input<8>, pp::Linear<16>, pp::Tanh, pp::Linear<16>, pp::Tanh,
                         pp::Linear<4>, pp::MSE> {};
using Trainer = pp::Pipeline<Small, pp::Stages<3>, pp::MicroBatches<4>, pp::MicroBatchSize<2>,
                             pp::OneFOneB, pp::SGD>;

std::vector<float> const inputs(8 * Trainer::samples, 0.5f), labels(4 * Trainer::samples, 0.25f);

void check_same_work(pp::drawing const& predicted, pp::drawing const& measured) {
  REQUIRE(predicted.ranks.size() == measured.ranks.size());
  for (std::size_t rank = 0; rank < predicted.ranks.size(); ++rank) {
    auto const &a = predicted.ranks[rank].actions, &b = measured.ranks[rank].actions;
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].what == b[i].what);
    CHECK(predicted.ranks[rank].peak_memory == measured.ranks[rank].peak_memory);
  }
  CHECK(predicted.transfers.size() == measured.transfers.size());
}

}  // namespace

TEST_CASE("the plan is drawn with its times and bytes") {
  pp::drawing const d = pp::drawing_of_plan<Trainer>();
  CHECK(d.words.title == "Small, predicted");
  CHECK(d.words.time_unit == "FLOP");
  CHECK(d.makespan == Trainer::compiled::timeline().makespan);
  CHECK(d.bubble_by_makespan == Trainer::plan.bubble);
  for (int rank = 0; rank < 3; ++rank)
    CHECK(d.ranks[std::size_t(rank)].peak_memory == Trainer::plan.stages[rank].saved_bytes);
}

TEST_CASE("a run is drawn as it was executed") {
  Trainer trainer({.seed = 1});
  trainer.step({inputs, labels});
  pp::drawing const d = pp::drawing_of_last_run(trainer, "a run");
  CHECK(d.words.title == "a run");
  CHECK(d.words.time_unit == "ns");
  check_same_work(pp::drawing_of_plan<Trainer>(), d);
  bool starts = false, ends = false;
  for (std::size_t rank = 0; rank < d.ranks.size(); ++rank) {
    long before = 0;
    for (pp::detail::drawn_action const& a : d.ranks[rank].actions) {
      CHECK(a.start >= before);
      CHECK(a.end >= a.start);
      before = a.end;
      starts = starts || (a.critical && a.what == pp::action{pp::action_kind::forward, 0, 0});
      ends = ends || (a.critical && a.end == d.makespan);
    }
  }
  CHECK(starts);  // nothing waits for nothing but the first forward
  CHECK(ends);
  for (pp::detail::drawn_transfer const& t : d.transfers)
    CHECK(d.at(t.from_rank, t.from).start < d.at(t.to_rank, t.to).start);
}

TEST_CASE("an evaluation keeps nothing") {
  Trainer trainer({.seed = 1});
  trainer.evaluate({inputs, labels});
  pp::drawing const d = pp::drawing_of_last_run(trainer);
  CHECK(d.words.title == "Small, measured");
  for (pp::detail::drawn_rank const& r : d.ranks) {
    CHECK(r.actions.size() == 4);
    CHECK((r.memory.empty() || r.memory.back().live == 0));
  }
}

TEST_CASE("kernels lie inside the actions that launched them") {
  Trainer trainer({.seed = 1});
  pp::seen_kernels<Trainer> kernels;
  trainer.watch({inputs, labels}, kernels.watcher());
  pp::drawing d = pp::drawing_of_last_run(trainer);
  kernels.add_to(d);
  int launches = 0;
  for (int s = 0; s < Trainer::plan.stage_count; ++s)
    launches +=
        4 * (Trainer::plan.stages[s].forward_kernels + Trainer::plan.stages[s].backward_kernels);
  std::size_t details = 0;
  for (pp::detail::drawn_rank const& r : d.ranks) {
    details += r.details.size();
    std::size_t inside = 0;
    for (pp::detail::drawn_detail const& k : r.details)
      for (pp::detail::drawn_action const& a : r.actions)
        inside += a.start <= k.start && k.start <= k.end && k.end <= a.end;
    CHECK(inside >= r.details.size());
  }
  CHECK(details == std::size_t(launches));
  CHECK(d.ranks[0].details[0].name.find("matmul") == 0);
}
