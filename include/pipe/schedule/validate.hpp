// SPDX-License-Identifier: BSL-1.0
//
// The validation of schedules. A table that passes trains exactly like a single stage and cannot
// deadlock. Everything is computed once, on the rank with the weights, in an order in which every
// value exists before it is read, within the memory limit. Otherwise the verdict names the first
// faulty action. Each check is a separate function of linear cost, so that a large table can be
// proved by several constant evaluations.
#pragma once

#include <pipe/schedule/execution.hpp>
#include <pipe/schedule/in_flight.hpp>

namespace pp {

namespace schedules {

/// The kinds of faults of a table; describe() has a sentence for each.
enum class fault : unsigned char {
  none,
  wrong_shape,
  too_large,
  out_of_range,
  no_such_rank,
  too_many,
  wrong_rank,
  needless,
  not_run,
  repeated,
  not_a_pair,
  missing,
  recompute_too_late,
  update_too_early,
  out_of_order,
  wrong_version,
  over_limit,
  before_its_input,
  deadlock
};

}  // namespace schedules

namespace detail {

/// A sentence about the action that a verdict names.
constexpr char const* describe(fault what) {
  constexpr char const* sentences[] = {
      "the schedule is complete, ordered and free of deadlock",
      "the numbers of ranks, chunks, costs and micro-batches do not fit the table and its "
      "placement",
      "the table has more actions than can be counted",
      "its chunk, its micro-batch or its kind does not exist",
      "its rank does not exist",
      "there is no room for it: the rank's list is as long as a step needs",
      "its chunk is held by another rank",
      "a forward-only schedule has nothing but forwards",
      "no trainer runs it: the update follows the last action, and recomputation is part of the "
      "backward unless schedule and options recompute ahead",
      "it has been done before",
      "it runs together with what follows it, which is no backward of another micro-batch",
      "it is never done",
      "its backward has already been done",
      "gradients of later micro-batches would not be in it",
      "a later micro-batch has already been through this chunk in this direction",
      "its chunk does not have these weights, or its forward read others",
      "it needs more memory than its rank may use",
      "what it needs comes later on its own rank",
      "it waits for another rank, which waits for this one",
  };
  static_assert(sizeof(sentences) / sizeof(sentences[0]) == static_cast<int>(fault::deadlock) + 1);
  return what <= fault::deadlock ? sentences[static_cast<int>(what)] : "unknown fault";
}

}  // namespace detail

namespace schedules {

/// The first fault of a table: its `position`-th action of `rank`, which is `which`. For a missing
/// action: the action, the rank that should run it, and the position past the end of its list.
struct verdict {
  fault what = fault::none;
  int rank = -1;
  int position = -1;
  action which{};

  constexpr bool ok() const { return what == fault::none; }
  constexpr char const* text() const { return detail::describe(what); }
};

}  // namespace schedules

namespace detail {

/// Whether table, placement, problem and costs have the same sizes, and at most most_actions
/// actions.
template <pipeline_problem Problem, action_table Table>
constexpr verdict check_shape(Problem const& problem, Table const& table) {
  if (table.ranks() != problem.ranks || !fits_placement(problem, table.where))
    return verdict{fault::wrong_shape, -1, -1, action{}};
  return count_actions(table) <= most_actions ? verdict{}
                                              : verdict{fault::too_large, -1, -1, action{}};
}

/// Whether an update may follow the last gradient of a micro-batch: the micro-batch is its holder's
/// last in a mini-batch, or in the step.
template <action_table Table>
constexpr bool may_update(Table const& table, int chunk, int micro_batch, int micro_batches) {
  int const of = table.mini_batch > 0 ? table.mini_batch : micro_batches;
  return micro_batch % of + replicas(table.where, chunk) >= of;
}

/// Whether every F, and BW or both B and W, of every chunk and micro-batch runs exactly once, on
/// the rank of the chunk, and nothing else runs but a recomputation before a backward and an update
/// with the last weight gradient.
///
/// needs: check_shape
template <pipeline_problem Problem, action_table Table>
constexpr verdict check_complete(Problem const& problem, Table const& table) {
  using enum action_kind;
  constexpr unsigned any_input_gradient = bit(backward) | bit(backward_input);
  constexpr unsigned any_weight_gradient = bit(backward) | bit(backward_weight);
  constexpr unsigned excluded_by[action_kinds] = {
      bit(forward),                              // F
      any_input_gradient,                        // B
      any_weight_gradient,                       // W
      any_input_gradient | any_weight_gradient,  // BW
      bit(recompute),                            // R
      bit(update),                               // U
  };
  int const micro_batches = problem.micro_batches;
  // A table with fewer actions than cells lacks an action among the first count + 1 cells, so the
  // cells beyond need no memory.
  long const cells = long(problem.chunks) * micro_batches, enough = count_actions(table) + 1;
  long const looked_at = cells < enough ? cells : enough;
  auto seen = scratch<unsigned>(looked_at);

  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0; i < table.size(rank); ++i) {
      action const a = table.at(rank, i);
      auto const wrong = [&](fault what) { return verdict{what, rank, i, a}; };
      bool const chunk_exists = a.chunk >= 0 && a.chunk < problem.chunks;
      bool const micro_batch_exists = a.micro_batch >= 0 && a.micro_batch < micro_batches;
      if (!chunk_exists || !micro_batch_exists || a.kind > update)
        return wrong(fault::out_of_range);
      if (rank_of(table.where, problem.ranks, a.chunk, a.micro_batch) != rank)
        return wrong(fault::wrong_rank);
      if (!table.trains && a.kind != forward) return wrong(fault::needless);
      long const place = long(a.chunk) * micro_batches + a.micro_batch;
      if (place >= looked_at) continue;
      unsigned& cell = seen.item[place];
      if (cell & excluded_by[static_cast<int>(a.kind)]) return wrong(fault::repeated);
      if (a.with_next && (i + 1 == table.size(rank) || !makes_pair(a, table.at(rank, i + 1))))
        return wrong(fault::not_a_pair);
      if (a.kind == recompute && (cell & any_input_gradient))
        return wrong(fault::recompute_too_late);
      if (a.kind == update && !may_update(table, a.chunk, a.micro_batch, micro_batches))
        return wrong(fault::update_too_early);
      cell |= bit(a.kind);
    }
  if constexpr (requires { table.unplaced; })
    if (unplaced_action const& u = table.unplaced; u.any)
      return u.rank_exists ? verdict{fault::too_many, u.rank, table.size(u.rank), u.which}
                           : verdict{fault::no_such_rank, u.rank, -1, u.which};

  for (int chunk = 0; chunk < problem.chunks; ++chunk)
    for (int mb = 0; mb < micro_batches; ++mb) {
      unsigned const cell = seen.item[long(chunk) * micro_batches + mb];
      bool const has_forward = cell & bit(forward);
      bool const has_input_gradient = !table.trains || (cell & any_input_gradient);
      bool const has_weight_gradient = !table.trains || (cell & any_weight_gradient);
      bool const has_update = table.mini_batch <= 0 ||
                              !may_update(table, chunk, mb, micro_batches) || (cell & bit(update));
      if (has_forward && has_input_gradient && has_weight_gradient && has_update) continue;
      action_kind const missing = !has_forward                                  ? forward
                                  : !has_input_gradient && !has_weight_gradient ? backward
                                  : !has_input_gradient                         ? backward_input
                                  : !has_weight_gradient                        ? backward_weight
                                                                                : update;
      int const rank = rank_of(table.where, problem.ranks, chunk, mb);
      return verdict{fault::missing, rank, table.size(rank), action{missing, chunk, mb}};
    }
  return verdict{};
}

/// Whether the micro-batches pass every chunk (every replica of a chunk) in order: as forwards, as
/// input gradients, as weight gradients, and as R where there are any. Then gradients are summed in
/// that order, every channel delivers its values in order, and storage per micro-batch can be a
/// ring of slots.
///
/// needs: check_complete, but for missing actions
template <pipeline_problem Problem, action_table Table>
constexpr verdict check_order(Problem const& problem, Table const& table) {
  int const streams = holders(table.where, problem.chunks);
  auto outputs = scratch<int>(streams, -1);
  auto input_gradients = scratch<int>(streams, -1);
  auto weight_gradients = scratch<int>(streams, -1);
  auto recomputed = scratch<int>(streams, -1);

  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0; i < table.size(rank); ++i) {
      action const a = table.at(rank, i);
      int const stream = holder_of(table.where, a.chunk, a.micro_batch);
      bool const output = a.kind == action_kind::forward, again = a.kind == action_kind::recompute;
      bool const input_gradient = makes_input_gradient(a.kind),
                 weight_gradient = makes_weight_gradient(a.kind);
      if ((output && outputs.item[stream] >= a.micro_batch) ||
          (input_gradient && input_gradients.item[stream] >= a.micro_batch) ||
          (weight_gradient && weight_gradients.item[stream] >= a.micro_batch) ||
          (again && recomputed.item[stream] >= a.micro_batch))
        return verdict{fault::out_of_order, rank, i, a};
      if (output) outputs.item[stream] = a.micro_batch;
      if (input_gradient) input_gradients.item[stream] = a.micro_batch;
      if (weight_gradient) weight_gradients.item[stream] = a.micro_batch;
      if (again) recomputed.item[stream] = a.micro_batch;
    }
  return verdict{};
}

/// Whether every action reads a version of the weights that its chunk has by then; whether F, R and
/// backward of a micro-batch read the same version, or backward a version that is newer by at most
/// the table's drift; whether each update makes the next version; and whether the memory of every
/// rank stays within the problem's limit. `peak` becomes the most memory of a rank, up to the
/// fault.
///
/// needs: check_complete, but for missing actions
template <pipeline_problem Problem, action_table Table>
constexpr verdict check_resources(Problem const& problem, Table const& table, long& peak) {
  auto updates = scratch<int>(holders(table.where, problem.chunks));
  auto read = scratch<int>(long(problem.chunks) * problem.micro_batches, -1);
  verdict found;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    long const limit = memory_limit(problem, rank);
    for_each_memory(problem, table, rank, [&](int i, long live, long) {
      if (!found.ok()) return;
      action const a = table.at(rank, i);
      int& now = updates.item[holder_of(table.where, a.chunk, a.micro_batch)];
      int& by_forward = read.item[long(a.chunk) * problem.micro_batches + a.micro_batch];
      bool const is_update = a.kind == action_kind::update, in_table = table.mini_batch > 0;
      bool const right = is_update        ? a.version == (in_table ? now + 1 : 0)
                         : by_forward < 0 ? a.version >= 0 && a.version <= now
                         : a.kind == action_kind::recompute
                             ? a.version == by_forward
                             : a.version >= by_forward && a.version <= now &&
                                   a.version <= by_forward + table.drift;
      if (is_update)
        now += in_table;
      else if (by_forward < 0)
        by_forward = a.version;
      if (!right) found = verdict{fault::wrong_version, rank, i, a};
      if (live > peak) peak = live;
      if (limit > 0 && live > limit) found = verdict{fault::over_limit, rank, i, a};
    });
  }
  return found;
}

template <pipeline_problem Problem, action_table Table>
constexpr verdict check_resources(Problem const& problem, Table const& table) {
  long peak = 0;
  return check_resources(problem, table, peak);
}

/// Whether every rank reaches the end of its list over channels of `slots[boundary]` slots. Every
/// transfer is a rendezvous: a value stays in its slot until its last reader is done, and a writer
/// without a free slot waits. The answer does not depend on how long actions take.
///
/// With unbounded slots no rank waits for a channel. For a schedule of F and BW this also proves
/// channels of peak_in_flight(table, rank of c, c) slots between c and c + 1: the writer's own list
/// puts the last read of a slot before its next write. `schedules::boundary_slots` finds smaller
/// numbers.
///
/// needs: check_complete
template <pipeline_problem Problem, action_table Table, class Slots = unbounded_slots>
constexpr verdict check_progress(Problem const& problem, Table const& table,
                                 Slots const& slots = Slots{}) {
  auto paper = execution<Problem, Table, Slots>(problem, table, slots);
  if (paper.run([](int, long, long, long) {})) return verdict{};

  int culprit = -1;
  for (int rank = problem.ranks - 1; rank >= 0; --rank)
    if (paper.stuck(rank)) culprit = rank;
  for (int rank = problem.ranks - 1; rank >= 0; --rank)
    if (paper.stuck(rank) && paper.waits_for_itself(rank)) culprit = rank;
  int const position = paper.position(culprit);
  return verdict{paper.waits_for_itself(culprit) ? fault::before_its_input : fault::deadlock,
                 culprit, position, table.at(culprit, position)};
}

/// Whether a chunk with R has R for every micro-batch: R brings back what the chunk does not store.
///
/// needs: check_complete
template <pipeline_problem Problem, action_table Table>
constexpr verdict check_recomputed(Problem const& problem, Table const& table) {
  auto again = scratch<int>(problem.chunks);
  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0; i < table.size(rank); ++i)
      if (action const a = table.at(rank, i); a.kind == action_kind::recompute)
        ++again.item[a.chunk];
  for (int chunk = 0; chunk < problem.chunks; ++chunk) {
    if (again.item[chunk] == 0 || again.item[chunk] == problem.micro_batches) continue;
    auto has = scratch<bool>(problem.micro_batches);
    for_each_of_chunk(table, chunk, [&](int, int, action const& a) {
      if (a.kind == action_kind::recompute) has.item[a.micro_batch] = true;
    });
    int mb = 0;
    while (has.item[mb]) ++mb;
    int const rank = rank_of(table.where, problem.ranks, chunk, mb);
    return verdict{fault::missing, rank, table.size(rank),
                   action{action_kind::recompute, chunk, mb}};
  }
  return verdict{};
}

/// Whether a trainer can run every action of a table with a flush: F, B, W and BW, since the
/// trainer's update follows the last action. recomputes: also R; otherwise recomputation is part of
/// B and BW.
template <action_table Table>
constexpr verdict check_runs(Table const& table, bool recomputes = false) {
  auto const is_run = [&](action const& a) {
    return a.kind != action_kind::update && (recomputes || a.kind != action_kind::recompute);
  };
  for (int rank = 0; rank < table.ranks(); ++rank)
    for (int i = 0; i < table.size(rank); ++i)
      if (action const a = table.at(rank, i); !is_run(a))
        return verdict{fault::not_run, rank, i, a};
  if constexpr (requires { table.unplaced; })  // an action that had no place
    if (unplaced_action const& u = table.unplaced; u.any && u.rank_exists && !is_run(u.which))
      return verdict{fault::not_run, u.rank, table.size(u.rank), u.which};
  return verdict{};
}

}  // namespace detail

namespace schedules {

/// The first fault of a schedule, or none.
///
/// cost: linear in the number of actions. With a compiler's default limits one constant evaluation
///       has room for about 7,000 actions; for larger tables call each check in a constant of its
///       own (check_progress: up to 11,000).
template <pipeline_problem Problem, detail::action_table Table,
          class Slots = detail::unbounded_slots>
constexpr verdict validate(Problem const& problem, Table const& table,
                           Slots const& slots = Slots{}) {
  verdict found = detail::check_shape(problem, table);
  if (found.ok()) found = detail::check_complete(problem, table);
  if (found.ok()) found = detail::check_order(problem, table);
  if (found.ok()) found = detail::check_resources(problem, table);
  if (found.ok()) found = detail::check_progress(problem, table, slots);
  return found;
}

}  // namespace schedules

}  // namespace pp
