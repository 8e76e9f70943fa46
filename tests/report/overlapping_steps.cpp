// SPDX-License-Identifier: BSL-1.0
//
// The last of steps that overlap, as they were executed, and drawn.
#include "catch.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <pipe/pipe.hpp>
#include <pipe/report/html.hpp>
#include <pipe/report/rank_load.hpp>
#include <pipe/report/svg.hpp>
#include <pipe/report/terminal.hpp>
#include <pipe/report/trace.hpp>
#include <pipe/report/trainer_drawing.hpp>
#include <pipe/schedule/catalog/families.hpp>

using namespace pp;

namespace {

struct Net : Model<Input<6>, Linear<8>, GELUTanh, Linear<8>, GELUTanh, Linear<8>, GELUTanh,
                   Linear<4>, MSE> {};
template <class S, int A, class... More>
using Of = Pipeline<Net, Stages<4>, MicroBatches<A>, MicroBatchSize<2>, SGD, S, More...>;

template <class Trainer>
std::vector<typename Trainer::batch> mini_batches(int count, int samples = Trainer::samples) {
  static std::vector<float> const inputs(6 * 64, 0.5f), labels(4 * 64, 0.25f);
  auto const n = std::size_t(samples);
  typename Trainer::batch const one{std::span(inputs).first(6 * n), std::span(labels).first(4 * n)};
  return std::vector<typename Trainer::batch>(std::size_t(count), one);
}

/// The updates in the weights that micro-batch k of all reads in chunk s, of A in a mini-batch, in
/// the trainer's whole life: the table of docs/howto/overlapping_steps.md. begin: those before the
/// call.
using version_rule = long (*)(schedules::action_kind, long k, int s, int A, long begin);

/// A trainer's schedule: its name, micro-batches of a mini-batch and stages.
struct schedule_of {
  std::string name;
  int mini_batch, stages;
};

/// shown: steps that are recorded, behind `first`, of a call after `before` steps. samples: of each
void check_records(schedule_of const& of, executed_run const& run, long before, int first,
                   int shown, int samples, version_rule version) {
  int const A = of.mini_batch;
  int const there = (samples + 1) / 2;  // micro-batches of a mini-batch
  REQUIRE(run.steps == shown);
  REQUIRE(run.first_step == first);
  std::map<std::tuple<int, int, int>, executed_action> forwards, backwards;
  for (std::size_t row = 0; row < run.rows.size(); ++row) {
    long end = 0;
    std::map<int, int> updates;    // by step
    std::map<int, long> made;      // versions, by their time
    std::map<int, long> complete;  // by step, the last gradient
    for (executed_action const& e : run.rows[row]) {
      INFO(of.name << ": " << schedules::short_name(e.what.kind) << " of step " << e.step);
      CHECK(e.start >= end);
      CHECK(e.end >= e.start);
      end = e.end;
      CHECK(e.what.micro_batch < there);
      auto const key = std::tuple(e.step, e.what.micro_batch, e.what.chunk);
      if (e.what.kind == schedules::action_kind::update) {
        CHECK(++updates[e.step] == 1);
        CHECK(e.what.version == e.step + 1);
        CHECK(e.what.micro_batch == there - 1);
        CHECK(e.start >= complete[e.step]);
        made[e.what.version] = e.end;
        continue;
      }
      if (e.what.kind == schedules::action_kind::forward) CHECK(forwards.emplace(key, e).second);
      if (detail::makes_input_gradient(e.what.kind)) CHECK(backwards.emplace(key, e).second);
      if (detail::makes_weight_gradient(e.what.kind)) complete[e.step] = e.end;
      if (e.what.version > first) CHECK(made.count(e.what.version) == 1);
      long const k = (before + e.step) * A + e.what.micro_batch;
      CHECK(before + e.what.version == version(e.what.kind, k, e.what.chunk, A, before));
    }
    CHECK(int(updates.size()) == shown);
  }
  CHECK(int(forwards.size()) == shown * there * of.stages);
  CHECK(backwards.size() == forwards.size());
  for (auto const& [key, f] : forwards) {
    auto [step, mb, chunk] = key;
    CHECK(backwards.at(key).start >= f.end);
    if (chunk > 0) {
      // A result may be handed on a little before its action ends.
      CHECK(f.start >= forwards.at({step, mb, chunk - 1}).start);
      CHECK(backwards.at({step, mb, chunk - 1}).start >= backwards.at(key).start);
    }
  }
}

template <class Trainer>
void check_run(version_rule version, typename Trainer::settings const& settings = {}) {
  schedule_of const of{Trainer::plan().schedule, Trainer::compiled::mini_batch,
                       Trainer::compiled::stages};
  Trainer trainer(settings);
  trainer.train(mini_batches<Trainer>(9));
  check_records(of, gather_executed(trainer), 0, 5, 4, Trainer::samples, version);
  // Fewer than are kept, and of fewer samples.
  int const samples = std::max(1, Trainer::samples - 3);
  trainer.train(mini_batches<Trainer>(3, samples));
  check_records(of, gather_executed(trainer), 9, 0, 3, samples, version);
  trainer.train(mini_batches<Trainer>(6, samples));
  check_records(of, gather_executed(trainer), 12, 2, 4, samples, version);
}

long of_step(schedules::action_kind, long k, int, int A, long) { return k / A; }
long from_zero(long n) { return n < 0 ? 0 : n; }

void check_same_actions(char const* schedule, drawings::drawing const& measured,
                        drawings::drawing const& predicted) {
  REQUIRE(measured.steps == 4);
  CHECK(predicted.steps == 4);
  REQUIRE(measured.ranks.size() == predicted.ranks.size());
  for (std::size_t r = 0; r < measured.ranks.size(); ++r) {
    std::vector<schedules::action> done, planned;
    for (detail::drawn_action const& a : measured.ranks[r].actions) done.push_back(a.what);
    for (detail::drawn_action const& a : predicted.ranks[r].actions)
      // An update is recorded once for all chunks of the rank.
      if (a.what.kind != schedules::action_kind::update ||
          planned.back().kind != schedules::action_kind::update)
        planned.push_back(a.what);
    INFO(schedule << ", rank " << r);
    CHECK(done == planned);
    CHECK(measured.ranks[r].peak_memory == predicted.ranks[r].peak_memory);
  }
  CHECK(measured.transfers.size() == predicted.transfers.size());
}
/// Four steps in a new trainer are executed as they are planned, also in several chunks of a rank.
template <class Trainer>
void check_plan() {
  Trainer trainer;
  trainer.train(mini_batches<Trainer>(4));
  drawings::drawing const measured = drawings::of_last_run(trainer);
  check_same_actions(Trainer::plan().schedule, measured,
                     drawings::of_plan<Trainer>(measured.steps));
}

}  // namespace

TEST_CASE("the last of steps that overlap are recorded with the weights that they read") {
  check_run<Of<Steady<>, 2>>(of_step);
  check_run<Of<Steady<ZeroBubbleH2>, 4>>(of_step);
  check_run<Of<Steady<>, 2, GradientAccumulation<2>>>(of_step);
  check_run<Of<PipeDream<>, 2>>([](schedules::action_kind, long k, int s, int A, long) {
    return from_zero(k - (3 - s)) / A;
  });
  check_run<Of<PipeDream<true>, 2>>(
      [](schedules::action_kind, long k, int, int A, long) { return from_zero(k - 3) / A; });
  check_run<Of<PipeDream2BW<>, 3>>(
      [](schedules::action_kind, long k, int, int A, long) { return from_zero(k / A - 1); });
  // One copy: a call begins with the newest. A prediction is made of these.
  version_rule const newest = [](schedules::action_kind kind, long k, int s, int A, long begin) {
    return std::max(begin,
                    kind == schedules::action_kind::forward ? from_zero(k - (3 - s)) / A : k / A);
  };
  check_run<Of<PACI<>, 2>>(newest);
  check_run<Of<PACI<0, true>, 1>>(newest);
}
TEST_CASE("a step that is taken back is recorded as it was made again") {
  // Clipped from the first step on, then never.
  check_run<Of<Steady<ZeroBubbleH2>, 4>>(of_step, {.clip_norm = 1e-3});
}
TEST_CASE("steps that overlap are executed as planned") {
  check_plan<Of<Steady<ZeroBubbleH2>, 4>>();
  check_plan<
      Pipeline<Net, Stages<4>, MicroBatches<4>, MicroBatchSize<2>, SGD, Steady<ZeroBubbleV>>>();
  check_plan<Of<PipeDream<>, 2>>();
  check_plan<Of<PACI<>, 2>>();
  check_plan<Of<Steady<>, 2, GradientAccumulation<2>>>();
  check_plan<Of<PipeDream<>, 1, GradientAccumulation<2>>>();
}
TEST_CASE("a page shows the last steps, planned above measured") {
  using Trainer = Of<Steady<ZeroBubbleH2>, 4>;
  Trainer trainer;
  trainer.train(mini_batches<Trainer>(6));
  // [page]
  drawings::drawing const measured = drawings::of_last_run(trainer);  // the last four steps
  std::string const page = drawings::as_html(drawings::of_plan<Trainer>(measured.steps), measured);
  // [/page]
  CHECK(page.find("\"U update\"") != page.npos);
  for (drawings::drawing const& d : {drawings::of_plan<Trainer>(measured.steps), measured}) {
    std::string const svg = drawings::as_svg(d), trace = drawings::as_trace(d),
                      text = drawings::as_text(d);
    CHECK(svg.find("<title>U of micro-batch 15, chunk 3: ") != svg.npos);
    CHECK(svg.find("micro-batch 16") == svg.npos);
    CHECK(trace.find("\"B15\"") != trace.npos);
    CHECK(std::count(text.begin(), text.end(), '*') >= 4 * 4);  // and one in the legend
  }
  for (rank_load const& load : rank_loads(trainer, {})) CHECK((load.busy > 0 && load.busy <= 1));
  // A step alone is one, as ever.
  trainer.step(mini_batches<Trainer>(1)[0]);
  drawings::drawing const alone = drawings::of_last_run(trainer);
  CHECK(alone.steps == 1);
  CHECK(alone.ranks[0].actions.size() ==
        drawings::of_plan<Trainer>(alone.steps).ranks[0].actions.size());
}
