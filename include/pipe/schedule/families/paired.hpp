// SPDX-License-Identifier: BSL-1.0
//
// Pairs in the order of another family: a forward and a backward of different micro-batches run
// together, so that transfers inside the layers of each are hidden behind the computation of the
// other.
#pragma once

#include <pipe/base/composed_name.hpp>
#include <pipe/schedule/pairs.hpp>
#include <pipe/schedule/policy.hpp>

namespace pp {

namespace detail {

inline constexpr char paired_prefix[] = "paired ";

/// Makes a pair of each backward (B or BW) of a table and the forward of another micro-batch that
/// follows that backward on its rank.
template <action_table Table>
constexpr void pair_up(Table& table) {
  for (int rank = 0; rank < table.ranks(); ++rank)
    for (int i = 0; i + 1 < table.size(rank); ++i)
      if (action const b = table.at(rank, i), f = table.at(rank, i + 1); makes_pair(f, b)) {
        table.at(rank, i) = f;
        table.at(rank, i).with_next = true;
        table.at(rank, ++i) = b;
      }
}

}  // namespace detail

/// Family S with pairs: the pairs of its authors (DualPipe, DualPipeV), else each backward with the
/// forward that follows that backward, which is one more micro-batch in flight. A pair begins when
/// both inputs are there, so pairs need a deep warm-up. In an order such as EagerOneFOneB's or
/// Interleaved's pairs cost no time; in the order of OneFOneB each pair waits for a pair of the
/// next rank.
///
/// HiddenPercent: for plans: the part of F that a pair hides, measured; 0 on the host, where the
///                two run one after the other
/// needs:  S has no R: RecomputeAhead<Paired<S>>, not the other way round
/// law:    losses, gradients and updates have the bits of S
/// source: DeepSeek-AI, DualPipe, 2025; Megatron-Core: combined 1F1B
template <schedules::schedule_policy S, int HiddenPercent = 0>
  requires(HiddenPercent >= 0 && HiddenPercent <= 100 &&
           detail::overlap_of<S>() == detail::step_overlap::none && !detail::recomputes_ahead<S>())
struct Paired : S {
  static constexpr char const* name = detail::name_composed_of<detail::paired_prefix, S>.text;
  static constexpr int hidden_percent = HiddenPercent;
  /// A pair counts twice, as compilers take twice the steps for it.
  static constexpr bool fits_a_constant(int ranks, int micro_batches) {
    return pp::schedules::fits_a_constant<S>(ranks, 2 * micro_batches);
  }

  template <schedules::pipeline_problem Problem, detail::action_table Table>
  static constexpr void fill(Problem const& problem, Table& table) {
    if constexpr (requires { S::fill_paired(problem, table); }) {
      S::fill_paired(problem, table);
    } else {
      S::fill(problem, table);
      detail::pair_up(table);
    }
  }
};

}  // namespace pp
