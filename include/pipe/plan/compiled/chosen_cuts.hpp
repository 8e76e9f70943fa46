// SPDX-License-Identifier: BSL-1.0
//
// The cuts of a pipeline: the partition policy's, for the model and all options that its memory
// depends on. The compiled model is named by the cuts, not by the policy, so that pipelines with
// equal cuts share their kernels.
#pragma once

#include <utility>

#include <pipe/passes/compilation.hpp>
#include <pipe/passes/partition_memory.hpp>
#include <pipe/passes/unit_bytes.hpp>
#include <pipe/plan/compiled/stages_in_flight.hpp>
#include <pipe/plan/options/options.hpp>

namespace pp::detail {

/// Whether the cuts of a pipeline depend on its memory: if the policy is one of time, and every
/// stage has a rank. The cuts of StageReplicas are by time alone.
template <class Chosen>
inline constexpr bool is_cut_by_memory =
    Chosen::stages > 1 && partition_by_time<typename Chosen::partition> &&
    !has_ranks_of_stages<typename Chosen::template option<option_family::stages>>;

/// The bytes of a parameter on its rank: itself, its gradient, optimizer state, average, and copy
/// in the type of values; of a buffer, the buffer and its sums.
template <class Chosen>
constexpr long bytes_of_parameter(parameter const& p) {
  using element = typename Chosen::element;
  using optimizer = typename Chosen::optimizer;
  long const n = align_up(p.elements() * long(sizeof(element)));
  if (p.is_buffer) return p.is_committed() ? 2 * n : n;
  long const copy = Chosen::widths.has_copies() ? p.elements() * Chosen::widths.value : 0;
  if (!p.trained) return n + copy;
  long const all = (Chosen::averaging::averages ? 3 : 2) * n + copy;
  if (p.tied_to >= 0 || Chosen::offload::is_on) return all;
  bool const whole = updates_whole<optimizer>(p.kind);
  custom::tensor_shape const shape =
      whole ? custom::tensor_shape{p.kind, p.rows(), p.columns()}
            : custom::tensor_shape{custom::tensor_kind::vector, 1, padded<element>(p.elements())};
  return all + padded<element>(state_elements<optimizer>(whole, shape)) * long(sizeof(element));
}

/// What each rank has apart from what a cut_problem counts: nothing is known yet.
struct nothing_fixed {
  static constexpr long const* by_rank() { return nullptr; }
};
/// The same of a policy that knows it: see fitting_cuts.hpp.
template <class Partition>
struct fixed_of_policy {
  using type = nothing_fixed;
};
template <class Partition>
  requires requires { typename Partition::fixed; }
struct fixed_of_policy<Partition> {
  using type = typename Partition::fixed;
};

/// The bytes of all units of a model with these options.
template <class Chosen, class Units, class Values>
constexpr auto find_unit_bytes(uncut_model const& m, Units units, Values forward_values) {
  return find_unit_bytes(
      m, rule_of<typename Chosen::recompute>(),
      [](parameter const& p) { return bytes_of_parameter<Chosen>(p); }, units, forward_values);
}

/// Calls use(problem) with the problem of cutting a model with these options. cut_times: of the
/// units. Fixed: see nothing_fixed
template <class Chosen, class Fixed, class Bytes, class Units, class Use>
constexpr void with_cut_times(long const* cut_times, Bytes const& bytes, Units units,
                              Use const& use) {
  constexpr int stages = Chosen::stages, copies = replicas(Chosen::where, 0);
  list<int, stages * copies> rank;
  for (int s = 0; s < stages; ++s)
    for (int k = 0; k < copies; ++k)
      rank[s * copies + k] = rank_of(Chosen::where, Chosen::ranks, s, k);
  constexpr auto const& in_flight =
      stages_in_flight<typename Chosen::flushed, stages, Chosen::ranks, Chosen::micro_batches>;
  use(cut_problem{int(units), stages, Chosen::ranks, copies, cut_times, bytes.state.begin(),
                  bytes.kept.begin(), bytes.crossing.begin(), in_flight.begin(), rank.begin(),
                  Fixed::by_rank(), Chosen::memory_limit});
}

/// The same, with the times of the partition policy. times: of the units, by estimated cost
template <class Chosen, class Fixed, class Times, class Bytes, class Units, class Use>
constexpr void with_cut_problem(Times const& times, Bytes const& bytes, Units units,
                                Use const& use) {
  auto cut_times = array_of<long>(units);
  for (int u = 0; u < int(units); ++u) cut_times[u] = Chosen::partition::time_of_cut(u, times[u]);
  with_cut_times<Chosen, Fixed>(cut_times.begin(), bytes, units, use);
}

/// The cuts of model M with these options, by the compiler.
template <class M, class Chosen>
struct chosen_cuts {
  using described = described_model<M, Chosen::samples, Chosen::input_gradients>;
  using fixed_memory = typename fixed_of_policy<typename Chosen::partition>::type;
  static constexpr int stages = Chosen::stages;

  /// The bytes of all units, or nothing where the cuts do not depend on them.
  static constexpr auto find_bytes() {
    if constexpr (is_cut_by_memory<Chosen>) {
      constexpr graph_size sizes = described::sizes;
      return find_unit_bytes<Chosen>(
          {described::forward, described::backward,
           described::described_values.table(sizes.values, Chosen::widths, Chosen::samples),
           described::last_reader.items},
          fixed<described::units>{}, fixed<sizes.values>{});
    } else {
      return 0;
    }
  }
  /// A constant of its own, only of pipelines that need it.
  template <class>
  struct measured {
    static constexpr auto bytes = chosen_cuts::find_bytes();
  };
  /// See with_cut_problem.
  template <class Times, class Use>
  static constexpr void with_problem(Times const& times, Use const& use) {
    with_cut_problem<Chosen, fixed_memory>(times, measured<Times>::bytes, fixed<described::units>{},
                                           use);
  }
  static constexpr auto cuts =
      cut_units(described::training_costs.items, fixed<described::units>{}, fixed<stages>{},
                [](auto const& times, int of, int into, auto& c) {
                  if constexpr (Chosen::stages == 1)
                    c[1] = of;
                  else if constexpr (is_cut_by_memory<Chosen>)
                    with_problem(times, [&](cut_problem const& p) { partition_by_memory(p, c); });
                  else
                    Chosen::cutter::cut(times, of, into, c);
                });
  /// The bytes of each rank that the cuts were chosen by, without what is fixed.
  static constexpr auto counted() {
    list<long, Chosen::ranks> bytes;
    with_problem(list<long, described::units>{},
                 [&](cut_problem const& p) { count_bytes(p, cuts, bytes); });
    return bytes;
  }

  template <int... S>
  static Cut<cuts[S + 1]...> as_policy(std::integer_sequence<int, S...>);
  using type = decltype(as_policy(std::make_integer_sequence<int, stages - 1>{}));
};

}  // namespace pp::detail
