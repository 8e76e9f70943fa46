// SPDX-License-Identifier: BSL-1.0
//
// Recomputation as an action: what a stage has not stored is computed again while its rank waits
// for the gradient, no longer when it has come. So it is off the path of the gradient from the last
// stage to the first.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>

#include <pipe/schedule/in_flight.hpp>
#include <pipe/schedule/one_f_one_b.hpp>
#include <pipe/schedule/pairs.hpp>
#include <pipe/schedule/policy.hpp>
#include <pipe/schedule/scratch.hpp>

namespace pp {

namespace detail {

/// The name of family S, and " recompute-ahead".
template <class S>
struct recompute_ahead_name {
  static constexpr std::string_view family = S::name, suffix = " recompute-ahead";
  char characters[family.size() + suffix.size() + 1]{};
  constexpr recompute_ahead_name() {
    for (std::size_t i = 0; i < family.size(); ++i) characters[i] = family[i];
    for (std::size_t i = 0; i < suffix.size(); ++i) characters[family.size() + i] = suffix[i];
  }
};
template <class S>
inline constexpr recompute_ahead_name<S> name_of_recompute_ahead{};

}  // namespace detail

/// Copies a table of one step with R directly before each B or BW of a chunk, or before the pair
/// that it is in: it begins when the rank is free, and the backward when the gradient is there. A
/// chunk whose backwards all follow their forwards directly has no R: nothing is gained by not
/// storing what is read next.
///
/// law: no action ends later than where B and BW take the time of R, too, and nothing else differs
/// law: a rank has recomputed values of one micro-batch of a chunk, from R to B or BW; with B and W
///      apart, those that W reads stay until then
template <pipeline_problem Problem, detail::action_table From, detail::action_table Table>
constexpr void insert_recomputes(Problem const& problem, From const& from, Table& to) {
  using enum action_kind;
  auto recomputes = detail::scratch<bool>(problem.chunks);
  for (int c = 0; c < problem.chunks; ++c)
    recomputes.item[c] = !detail::is_backward_next_everywhere(
        from, c, detail::bit(backward) | detail::bit(backward_input));
  for (int rank = 0; rank < problem.ranks; ++rank)
    for (int i = 0; i < from.size(rank); ++i) {
      action const a = from.at(rank, i), next = a.with_next ? from.at(rank, i + 1) : a;
      if (detail::makes_input_gradient(next.kind) && recomputes.item[next.chunk] &&
          !detail::is_second(from, rank, i))
        to.push(rank, {recompute, next.chunk, next.micro_batch, next.version});
      to.push(rank, a);
    }
  to.unplaced = from.unplaced;
}

/// The order of family S with R of every micro-batch of a stage directly before its backward: while
/// the rank waits for the gradient, the stage computes again what a Recompute option has dropped.
/// A stage whose backward always comes right after its forward (the last one of 1F1B) drops
/// nothing.
///
/// needs:  S ends a step with a flush; of a Pipeline, an option that recomputes
/// law:    losses, norms and parameters have the bits of S
/// cost:   recomputed values have memory of their own in each stage, as B cannot share it
/// source: Liu et al., Mario: Near Zero-cost Activation Checkpointing in Pipeline Parallelism, 2025
template <schedule_policy S = OneFOneB>
  requires(S::trains && !detail::is_unflushed<S>() && std::is_same_v<detail::flushed_of<S>, S> &&
           !detail::recomputes_ahead<S>())
struct RecomputeAhead : S {
  static constexpr char const* name = detail::name_of_recompute_ahead<S>.characters;
  static constexpr bool recomputes_ahead = true;

  template <pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    auto plain = table;
    S::fill(problem, plain);
    insert_recomputes(problem, plain, table);
  }
};

}  // namespace pp
