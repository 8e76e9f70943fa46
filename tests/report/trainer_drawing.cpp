// SPDX-License-Identifier: BSL-1.0
//
// A pipeline's plan and its last run, drawn.
//
// Stands alone: it prints the names of its models.
#include <string>
#include <vector>

#include "catch.hpp"

#include <pipe/pipe.hpp>
#include <pipe/report/html.hpp>
#include <pipe/report/svg.hpp>
#include <pipe/report/terminal.hpp>
#include <pipe/report/trace.hpp>
#include <pipe/report/trainer_drawing.hpp>

namespace {

struct Small : pp::Model<pp::Input<8>, pp::Linear<16>, pp::Tanh, pp::Linear<16>, pp::Tanh,
                         pp::Linear<4>, pp::MSE> {};
using Trainer = pp::Pipeline<Small, pp::Stages<3>, pp::MicroBatches<4>, pp::MicroBatchSize<2>,
                             pp::OneFOneB, pp::SGD>;

std::vector<float> const inputs(8 * Trainer::samples, 0.5f), labels(4 * Trainer::samples, 0.25f);

void check_same_work(pp::drawings::drawing const& predicted,
                     pp::drawings::drawing const& measured) {
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
  pp::drawings::drawing const d = pp::drawings::of_plan<Trainer>();
  CHECK(d.words.title == "Small, predicted");
  CHECK(d.words.time_unit == "FLOP");
  CHECK(d.makespan == Trainer::compiled::timeline().makespan);
  CHECK(d.bubble_by_makespan == Trainer::plan.bubble);
  for (int rank = 0; rank < 3; ++rank)
    CHECK(d.ranks[std::size_t(rank)].peak_memory == Trainer::plan.stages[rank].saved_bytes);
  // The floor of the makespan is drawn, and its rank named; a run that was measured has none.
  CHECK(double(d.floor.time) / double(d.makespan) == Approx(1 - Trainer::plan.gap));
  CHECK(d.floor.time > 0);
  CHECK(pp::drawings::as_svg(d).find("<path class=\"floor\"") != std::string::npos);
  CHECK(pp::drawings::as_html(d).find("\"floor\":" + std::to_string(d.floor.time)) !=
        std::string::npos);
  CHECK(pp::detail::summary_of(d).find("(rank " + std::to_string(d.floor.rank) + ": ") !=
        std::string::npos);
}

TEST_CASE("a run is drawn as it was executed") {
  Trainer trainer({.seed = 1});
  trainer.step({inputs, labels});
  pp::drawings::drawing const d = pp::drawings::of_last_run(trainer, "a run");
  CHECK(d.words.title == "a run");
  CHECK(d.words.time_unit == "ns");
  CHECK(d.floor.time == 0);
  CHECK(pp::drawings::as_svg(d).find("class=\"floor\"") == std::string::npos);
  check_same_work(pp::drawings::of_plan<Trainer>(), d);
  bool starts = false, ends = false;
  for (std::size_t rank = 0; rank < d.ranks.size(); ++rank) {
    long before = 0;
    for (pp::detail::drawn_action const& a : d.ranks[rank].actions) {
      CHECK(a.start >= before);
      CHECK(a.end >= a.start);
      before = a.end;
      starts = starts || (a.critical && a.what == pp::schedules::action{
                                                      pp::schedules::action_kind::forward, 0, 0});
      ends = ends || (a.critical && a.end == d.makespan);
    }
  }
  CHECK(starts);  // nothing waits for nothing but the first forward
  CHECK(ends);
  for (pp::detail::drawn_transfer const& t : d.transfers)
    CHECK(d.at(t.from_rank, t.from).start < d.at(t.to_rank, t.to).start);
}

TEST_CASE("a stage that two ranks run has two rows") {
  using Twice = pp::Pipeline<Small, pp::StageReplicas<1, 2, 1>, pp::MicroBatches<4>,
                             pp::MicroBatchSize<2>, pp::OneFOneB, pp::SGD>;
  Twice trainer({.seed = 1});
  trainer.step({inputs, labels});
  pp::drawings::drawing const d = pp::drawings::of_last_run(trainer);
  CHECK(d.ranks.size() == 4);
  check_same_work(pp::drawings::of_plan<Twice>(), d);
}

TEST_CASE("an evaluation keeps nothing") {
  Trainer trainer({.seed = 1});
  trainer.evaluate({inputs, labels});
  pp::drawings::drawing const d = pp::drawings::of_last_run(trainer);
  CHECK(d.words.title == "Small, measured");
  for (pp::detail::drawn_rank const& r : d.ranks) {
    CHECK(r.actions.size() == 4);
    CHECK((r.memory.empty() || r.memory.back().live == 0));
  }
}

TEST_CASE("kernels lie inside the actions that launched them") {
  Trainer trainer({.seed = 1});
  pp::drawings::seen_kernels<Trainer> kernels;
  trainer.watch({inputs, labels}, kernels.watcher());
  pp::drawings::drawing d = pp::drawings::of_last_run(trainer);
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

TEST_CASE("replicas are rows of their own, and the slowest one has the critical path") {
  Trainer trainer({.seed = 1});
  trainer.step({inputs, labels});
  pp::executed_run run = pp::gather_executed(trainer);
  CHECK(run.ranks == 3);
  CHECK(run.rows.size() == 3);
  pp::drawings::drawing const one = pp::drawings::of_run<Trainer>(run);
  CHECK(pp::detail::summary_of(one).find("processes") == std::string::npos);

  // A second replica a microsecond later, in processes of its own.
  run.replicas = 2, run.processes = 4, run.clock_error = 1500;
  for (int rank = 0; rank < 3; ++rank) {
    run.rows.push_back(run.rows[std::size_t(rank)]);
    for (pp::executed_action& a : run.rows.back()) a.start += 1000, a.end += 1000;
  }
  pp::drawings::drawing const two = pp::drawings::of_run<Trainer>(run);
  CHECK(two.makespan == one.makespan + 1000);
  CHECK(two.bubble_by_makespan > one.bubble_by_makespan);
  CHECK(two.bubble_by_stage_local_span == Approx(one.bubble_by_stage_local_span));
  REQUIRE(two.ranks.size() == 6);
  CHECK(two.name_of(0) == "replica 0, rank 0");
  CHECK(two.name_of(5) == "replica 1, rank 2");
  std::string const said = pp::detail::summary_of(two);
  INFO(said);
  CHECK(said.find(", times of 4 processes within 1.50 µs") != said.npos);
  for (int row = 0; row < 6; ++row)
    for (std::size_t i = 0; i < two.ranks[std::size_t(row)].actions.size(); ++i) {
      pp::detail::drawn_action const &a = two.at(row, int(i)), &b = one.at(row % 3, int(i));
      CHECK(a.what == b.what);
      CHECK(a.start - b.start == (row < 3 ? 0 : 1000));
      CHECK(a.critical == (row < 3 ? false : b.critical));
    }
  REQUIRE(two.transfers.size() == 2 * one.transfers.size());
  for (std::size_t i = 0; i < two.transfers.size(); ++i) {
    pp::detail::drawn_transfer const &t = two.transfers[i],
                                     &u = one.transfers[i % one.transfers.size()];
    int const first = i < one.transfers.size() ? 0 : 3;
    CHECK(t.from_rank == first + u.from_rank);
    CHECK(t.to_rank == first + u.to_rank);
    CHECK((t.from == u.from && t.to == u.to));
  }
  // Every format names the rows.
  for (std::string const& text : {pp::drawings::as_text(two), pp::drawings::as_svg(two),
                                  pp::drawings::as_html(two), pp::drawings::as_trace(two)}) {
    CHECK(text.find("replica 1, rank 2") != text.npos);
    CHECK(text.find("\"rank 0\"") == text.npos);
  }
}

TEST_CASE("kernels of a replica are drawn in its own rows") {
  Trainer trainer({.seed = 1});
  pp::drawings::seen_kernels<Trainer> kernels;
  trainer.watch({inputs, labels}, kernels.watcher());
  pp::executed_run run = pp::gather_executed(trainer);
  run.replicas = 2;
  for (int rank = 0; rank < 3; ++rank) run.rows.push_back(run.rows[std::size_t(rank)]);
  pp::drawings::drawing d = pp::drawings::of_run<Trainer>(run);
  kernels.add_to(d);  // this process is in replica 0
  for (int row = 0; row < 6; ++row) CHECK(d.ranks[std::size_t(row)].details.empty() == (row >= 3));
}

TEST_CASE("of several leaves the kernels of the last one are drawn") {
  using Summed = pp::Pipeline<Small, pp::Stages<3>, pp::MicroBatches<2>, pp::MicroBatchSize<2>,
                              pp::OneFOneB, pp::SGD, pp::GradientAccumulation<2>>;
  Summed trainer({.seed = 1});
  pp::drawings::seen_kernels<Summed> kernels;
  trainer.watch({inputs, labels}, kernels.watcher());
  kernels.gather(trainer);  // nothing: there is one process
  pp::drawings::drawing d = pp::drawings::of_last_run(trainer);
  kernels.add_to(d);
  for (int rank = 0; rank < 3; ++rank) {
    pp::stage_plan const& s = Summed::plan.stages[rank];
    CHECK(d.ranks[std::size_t(rank)].details.size() ==
          std::size_t(2 * (s.forward_kernels + s.backward_kernels)));
  }
}
