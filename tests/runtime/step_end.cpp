// SPDX-License-Identifier: BSL-1.0
//
// The end of a run as a value: which operations run under which facts, and in which order.
#include "catch.hpp"

#include <pipe/runtime/step_end.hpp>

#include <algorithm>
#include <vector>

using namespace pp;
using namespace pp::detail;
using enum step_op;

namespace {

constexpr unsigned every_fact = 1023;

/// The operations that run, if step_op::judge finds the step sound or not.
std::vector<step_op> executed(unsigned facts, bool sound = true) {
  std::vector<step_op> ops;
  unsigned const known = run_lines(step_end, facts, [&](step_op op, unsigned f) {
    ops.push_back(op);
    return op == judge && sound ? f | run_fact::is_sound : f;
  });
  if (known & run_fact::updates && known & run_fact::is_sound)
    run_lines(copies_follow, known, [&](step_op op, unsigned f) {
      ops.push_back(op);
      return f;
    });
  return ops;
}

bool has(std::vector<step_op> const& ops, step_op op) {
  return std::count(ops.begin(), ops.end(), op) > 0;
}
auto first(std::vector<step_op> const& ops, step_op op) {
  return std::find(ops.begin(), ops.end(), op);
}
/// Every a comes before every b.
bool in_order(std::vector<step_op> const& ops, step_op a, step_op b) {
  auto const last_a = std::find(ops.rbegin(), ops.rend(), a);
  return !has(ops, a) || !has(ops, b) || last_a.base() <= first(ops, b);
}

}  // namespace

TEST_CASE("a plain step measures, judges and updates") {
  CHECK(executed(run_fact::trains | run_fact::completes | run_fact::is_last | run_fact::updates) ==
        std::vector{accumulate, measure, gather, judge, update, transpose});
}
TEST_CASE("a step with shared parameters and averages runs every operation") {
  CHECK(executed(run_fact::trains | run_fact::completes | run_fact::is_last | run_fact::updates |
                 run_fact::has_ties | run_fact::has_averages) ==
        std::vector{accumulate, barrier, sum_ties, measure, gather, judge, update, average,
                    transpose, barrier, copy_ties});
}
TEST_CASE("replicas that divide an update give each other their parts") {
  CHECK(executed(run_fact::trains | run_fact::completes | run_fact::is_last | run_fact::updates |
                 run_fact::has_averages | run_fact::divides) ==
        std::vector{accumulate, measure, gather, judge, update, share, average, transpose});
}
TEST_CASE("an update that is made again is what follows the judgement") {
  std::vector<step_op> ops;
  run_lines(
      step_end,
      run_fact::trains | run_fact::completes | run_fact::is_last | run_fact::updates |
          run_fact::is_sound | run_fact::has_ties | run_fact::has_buffers,
      [&](step_op op, unsigned f) {
        ops.push_back(op);
        return f;
      },
      first_of_update);
  CHECK(ops == std::vector{update, commit, transpose});
}
TEST_CASE("whatever the facts, operations come after what they read") {
  for (unsigned facts = 0; facts <= every_fact; ++facts)
    for (bool sound : {true, false}) {
      if (facts & run_fact::is_sound) continue;  // known from judge on
      // Only the last run of a step completes gradients, and updates.
      bool const is_last = facts & run_fact::is_last;
      if (!is_last && facts & (run_fact::completes | run_fact::updates)) continue;
      auto const ops = executed(facts, sound);
      CAPTURE(facts, sound);
      CHECK(ops.front() == accumulate);
      CHECK(has(ops, judge) == is_last);
      CHECK(has(ops, measure) == (is_last && facts & run_fact::trains));
      CHECK(in_order(ops, sum_ties, measure));
      CHECK(in_order(ops, measure, gather));
      CHECK(in_order(ops, gather, judge));
      CHECK(in_order(ops, judge, update));
      CHECK(in_order(ops, update, share));
      CHECK(in_order(ops, share, average));
      CHECK(in_order(ops, share, transpose));
      CHECK(in_order(ops, update, average));
      CHECK(in_order(ops, update, transpose));
      CHECK(in_order(ops, update, copy_ties));
      // What reads another rank's memory has a barrier before it, after the last write there.
      if (has(ops, sum_ties)) CHECK(*std::prev(first(ops, sum_ties)) == barrier);
      if (has(ops, copy_ties)) CHECK(*std::prev(first(ops, copy_ties)) == barrier);
      // Parameters change only in a sound step that was asked for.
      bool const steps = sound && facts & run_fact::updates && facts & run_fact::trains;
      CHECK(has(ops, update) == steps);
      CHECK(has(ops, average) == (steps && facts & run_fact::has_averages));
      if (!steps && !(facts & run_fact::updates))
        CHECK(ops.back() == (is_last ? judge : accumulate));
    }
}
TEST_CASE("gradients that wait for more are not added up between places") {
  auto const ops = executed(run_fact::trains | run_fact::is_last | run_fact::has_ties);
  CHECK(ops == std::vector{accumulate, measure, gather, judge});
}
TEST_CASE(
    "an accumulation before the last one only adds its gradients and its loss to those before it") {
  CHECK(executed(run_fact::trains | run_fact::has_ties) == std::vector{accumulate});
  CHECK(executed(0) == std::vector{accumulate});
}
TEST_CASE("all ranks pass a barrier before they update, and never only to evaluate") {
  unsigned const plain =
      run_fact::trains | run_fact::completes | run_fact::is_last | run_fact::updates;
  static_assert(count_barriers(0) == 0);
  CHECK(count_barriers(plain) == 1);
  CHECK(count_barriers(plain | run_fact::has_ties) == 2);
  CHECK(count_barriers(run_fact::trains | run_fact::is_last | run_fact::has_ties) == 1);
  CHECK(count_barriers(run_fact::trains | run_fact::has_ties) == 0);
  CHECK(count_barriers(run_fact::completes | run_fact::has_ties) == 0);
}
TEST_CASE("parameters written from outside are copied before they are transposed") {
  std::vector<step_op> ops;
  run_lines(copies_follow, run_fact::has_ties | run_fact::was_written,
            [&](step_op op, unsigned f) { return ops.push_back(op), f; });
  CHECK(ops == std::vector{barrier, copy_ties, transpose});
}
TEST_CASE("the facts of a run are those of its job and its pipeline") {
  pipeline_description d;
  job j;
  CHECK(facts_of(d, j) == (run_fact::completes | run_fact::is_last));
  j.what = job::kind::train;
  CHECK(facts_of(d, j) ==
        (run_fact::trains | run_fact::completes | run_fact::is_last | run_fact::updates));
  j.part.is_continued = true;
  j.update.applies = false;
  d.ties.count = 1;
  d.average_decay = 0.5;
  unsigned const facts = run_fact::trains | run_fact::has_ties | run_fact::has_averages;
  CHECK(facts_of(d, j) == (facts | run_fact::is_last));
  j.part.is_continued = false;
  j.part.accumulation = 1, j.part.accumulations = 4;
  CHECK(facts_of(d, j) == facts);
}
