// SPDX-License-Identifier: BSL-1.0
//
// Recomputation as an action: what a stage has not stored is computed again while its rank waits
// for the gradient, and not after the gradient has come. So recomputation is off the gradient's
// path from the last stage to the first.
#pragma once

#include <pipe/base/composed_name.hpp>
#include <pipe/schedule/families/one_f_one_b.hpp>
#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/pairs.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp {

namespace detail {

inline constexpr char recompute_ahead_suffix[] = " recompute-ahead";

/// Copies a table with R directly before each B or BW of the chunks for which recomputes(chunk), or
/// before the pair that has the B or BW. R reads the weights that its B or BW reads.
template <action_table From, action_table Table, class Recomputes>
constexpr void insert_recomputes_of(From const& from, Table& to, Recomputes const& recomputes) {
  for (int rank = 0; rank < from.ranks(); ++rank)
    for (int i = 0; i < from.size(rank); ++i) {
      action const a = from.at(rank, i), next = a.with_next ? from.at(rank, i + 1) : a;
      if (makes_input_gradient(next.kind) && recomputes(next.chunk) && !is_second(from, rank, i))
        to.push(rank, {action_kind::recompute, next.chunk, next.micro_batch, next.version});
      to.push(rank, a);
    }
  to.unplaced = from.unplaced, to.mini_batch = from.mini_batch, to.drift = from.drift;
}

}  // namespace detail

namespace schedules {

/// Copies a table with R directly before each B or BW of a chunk, or before the pair that has the B
/// or BW: R begins when the rank is free, and the backward when the gradient is there. A chunk
/// whose backwards all follow their forwards directly has no R: its values are read next, so
/// nothing is gained by not storing them.
///
/// law: no action ends later than in a table that differs only in that B and BW take the time of R,
///      too
/// law: a rank has recomputed values of one micro-batch of a chunk, from R to B or BW; with B and W
///      apart, the values that W reads stay until W
template <pipeline_problem Problem, detail::action_table From, detail::action_table Table>
constexpr void insert_recomputes(Problem const& problem, From const& from, Table& to) {
  using enum action_kind;
  auto recomputes = detail::scratch<bool>(problem.chunks);
  for (int c = 0; c < problem.chunks; ++c)
    recomputes.item[c] = !detail::is_backward_next_everywhere(
        from, c, detail::bit(backward) | detail::bit(backward_input));
  detail::insert_recomputes_of(from, to, [&](int chunk) { return recomputes.item[chunk]; });
}

}  // namespace schedules

namespace detail {

/// Whether a forward and its backward read the same version of the weights, as R has to.
template <class S>
constexpr bool keeps_version_for_backward() {
  if constexpr (is_unflushed<S>())
    return S::drift(2, 1) == 0;
  else
    return true;
}

/// What RecomputeAhead<S> changes in family S.
template <class S>
struct recomputing : S {
  static constexpr bool recomputes_ahead = true;

  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    auto plain = table;
    S::fill(problem, plain);
    insert_recomputes(problem, plain, table);
  }
};
/// Without a flush R is on all ranks but the last, in each period and in the table of a single
/// step, as both have the same programs.
template <class S>
  requires(is_unflushed<S>())
struct recomputing<S> : S {
  static constexpr bool recomputes_ahead = true;

  struct flushed : flushed_of<S> {
    static constexpr bool recomputes_ahead = true;
    template <pipeline_problem Problem, action_table Table>
    static constexpr void fill(Problem const& problem, Table& table) {
      insert(problem, table, [&](auto& plain) { flushed_of<S>::fill(problem, plain); });
    }
  };
  template <class Use>
  static constexpr void for_each_in_period(int ranks, int rank, int mini_batch, Use use) {
    S::for_each_in_period(ranks, rank, mini_batch, [&](action const& a) {
      if (makes_input_gradient(a.kind) && rank + 1 < ranks)
        use(action{action_kind::recompute, a.chunk, a.micro_batch, a.version});
      use(a);
    });
  }
  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill_run(Problem const& problem, Table& table, int mini_batch) {
    insert(problem, table, [&](auto& plain) { S::fill_run(problem, plain, mini_batch); });
  }
  template <pipeline_problem Problem, action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    insert(problem, table, [&](auto& plain) { S::fill(problem, plain); });
  }

 private:
  /// Fills a table with the actions that fill_plain makes, and with R.
  template <class Problem, class Table, class Fill>
  static constexpr void insert(Problem const& problem, Table& table, Fill const& fill_plain) {
    auto plain = table;
    fill_plain(plain);
    insert_recomputes_of(plain, table, [&](int chunk) { return chunk + 1 < problem.chunks; });
  }
};

}  // namespace detail

/// The order of family S with R of every micro-batch of a stage directly before its backward: while
/// the rank waits for the gradient, the stage computes again what a Recompute option has dropped.
/// A stage whose backward always comes right after its forward (the last one of 1F1B) drops
/// nothing.
///
/// needs:  S has no R yet, and reads the same weights in backward as in forward (not PACI); of a
///         Pipeline, an option that recomputes. Steps that overlap: Steady<RecomputeAhead<S>>
/// law:    losses, norms and parameters have the bits of S
/// cost:   recomputed values have memory of their own in each stage, as B cannot share it
/// source: Liu et al., Mario: Near Zero-cost Activation Checkpointing in Pipeline Parallelism, 2025
template <schedules::schedule_policy S = OneFOneB>
  requires(S::trains && detail::overlap_of<S>() != detail::step_overlap::confirmed &&
           detail::keeps_version_for_backward<S>() && !detail::recomputes_ahead<S>())
struct RecomputeAhead : detail::recomputing<S> {
  static constexpr char const* name =
      detail::name_composed_of<detail::no_text, S, detail::recompute_ahead_suffix>.text;
};

}  // namespace pp
