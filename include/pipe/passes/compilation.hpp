// SPDX-License-Identifier: BSL-1.0
//
// The compiler of models on one page, from a graph to launches: each constant is the result of one
// pass of model_passes.hpp, with an evaluation budget of its own.
//
// Some constants are made by a generic lambda, `[](auto...)`: for a non-generic lambda g++ also
// instantiates the conversion to a function pointer and evaluates the body twice. In a generic
// lambda nvcc mis-resolves template parameters, and a failed requirement is an error.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/passes/model_passes.hpp>
#include <pipe/passes/partition.hpp>
#include <pipe/passes/stage_programs.hpp>

namespace pp::detail {

/// Model M before it is cut: the passes whose results do not depend on the stages.
template <class M, int Samples, bool InputGradients>
struct described_model {
  using model = M;
  static constexpr int samples = Samples;

  // ---- differentiate ----

  /// The forward graph, and the gradients of its values and parameters.
  static constexpr graph_view forward = M::graph;
  /// The graph without ops and values.
  static constexpr graph_view outline = model_tables<M>::outline;
  static constexpr graph_size sizes = M::graph_type::size;
  static constexpr int units = sizes.units;
  /// A copy of the graph's repetitions, since constants that name the graph are slow to compile:
  /// see compiled_model.
  static constexpr repetition_list noted = M::graph.repetitions;
  static constexpr view<repetition> repetitions{noted.items, noted.count};
  static constexpr gradient_size gradient_sizes = count_gradients(M::graph, InputGradients);
  static constexpr auto gradients = differentiate<gradient_sizes>(M::graph, InputGradients);
  static constexpr gradient_view backward = gradients;
  /// Forward values and gradients, in one numbering.
  static constexpr int value_count = sizes.values + gradient_sizes.values;

  static constexpr auto training_costs = find_training_costs(forward, backward, fixed<units>{});
  static constexpr auto described_values =
      describe_values(forward, backward, Samples, fixed<value_count>{});
  static constexpr auto last_reader = find_last_readers(forward.ops, fixed<sizes.values>{});
};

/// Model M cut into `Stages` by partition policy `Cutter` and fused into kernel groups: the results
/// of all passes that do not depend on the schedule, so that kernels, which are instantiated on
/// this type, do not either.
///
/// InputGradients: inputs of numbers get gradients too.
///
/// needs: 1 <= Stages <= units of M
template <class M, int Stages, class Cutter, int Samples, number_widths Widths, class Recompute,
          bool InputGradients = false>
struct fused_model : described_model<M, Samples, InputGradients> {
  using described = described_model<M, Samples, InputGradients>;
  using described::forward, described::outline, described::sizes, described::units,
      described::repetitions, described::gradient_sizes, described::backward,
      described::value_count, described::training_costs, described::described_values,
      described::last_reader;
  static constexpr int stages = Stages;
  static constexpr number_widths widths = Widths;
  /// Whether kernels read copies of parameters in the type of values.
  static constexpr bool has_copies = Widths.has_copies();
  using recompute = Recompute;

  static constexpr auto transposed = find_transposed(view<parameter>(forward.parameters), backward,
                                                     Widths, fixed<sizes.parameters>{});
  /// The value that the first loss makes, and what the losses read.
  static constexpr int loss = forward.loss().out[0].index;
  static constexpr auto const& loss_inputs = model_tables<M>::loss_inputs;
  static constexpr int logits = loss_inputs[0].at.index;

  /// The numbers of the random streams as kernels read them from memory: 0, 1, 2 ...
  static constexpr int stream_count = count_streams(forward.ops);
  static constexpr auto streams = [](auto...) {
    list<int, stream_count> numbers;
    for (int i = 0; i < stream_count; ++i) numbers[i] = i;
    return numbers;
  }();

  // ---- partition ----

  static constexpr auto cuts = cut_units(
      training_costs.items, fixed<units>{}, fixed<stages>{},
      [](auto const& times, int of, int into, auto& c) { Cutter::cut(times, of, into, c); });
  static constexpr auto stage_of_unit = find_stages(cuts.items, stages, fixed<units>{});

  // ---- boundaries ----

  static constexpr value_table values = described_values.table(sizes.values, Widths, Samples);
  static constexpr auto crossing_values =
      find_boundaries(forward, backward, values, last_reader.items, cuts.items, fixed<stages>{},
                      fixed<3 * count_crossings(forward, last_reader.items, cuts.items, stages) +
                            stages * backward.inputs>{});
  /// Boundary s is before stage s. There are stages + 1; the last is empty, and so is the first
  /// without InputGradients.
  static constexpr boundary_table boundaries = crossing_values.table();

  // ---- recompute ----

  static constexpr auto reads =
      find_read_once(forward, backward, fixed<Widths.has_copies() ? value_count : 0>{});
  static constexpr bool const* read_once = Widths.has_copies() ? reads.items : nullptr;

  static constexpr auto recomputed =
      find_recomputed(forward, backward, rule_of<recompute>(), stage_of_unit.items, read_once,
                      fixed<sizes.ops>{}, fixed<sizes.values>{});
  static constexpr auto recomputed_ops =
      list_recomputed(forward.ops, recomputed.runs.items, fixed<recomputed.ops>{});
  static constexpr ops_by_list ops =
      lists_of(forward, backward, view<op>{recomputed_ops.items, recomputed.ops});
  /// The ops of one list, for constants that need no other list: see compiled_model.
  template <op_list L>
  static constexpr view<op> ops_of() {
    if constexpr (L == op_list::forward)
      return forward.ops;
    else if constexpr (L == op_list::input_gradients)
      return backward.input_ops;
    else if constexpr (L == op_list::weight_gradients)
      return backward.weight_ops;
    else
      return {recomputed_ops.items, recomputed.ops};
  }
  static constexpr auto costs =
      find_costs(training_costs, ops_of<op_list::recompute>(), fixed<units>{});

  // ---- fuse ----

  static constexpr auto counted = count_reads(
      forward, backward, ops_of<op_list::recompute>(), boundaries, recomputed.dropped.items,
      recompute::keeps_last, fixed<value_count>{}, fixed<recomputed.ops == 0 ? 0 : value_count>{});
  static constexpr per_op_list<int const*> uses = counted.by_list();
  static constexpr per_op_list<int> logits_read = reads_of(logits, uses);

  static constexpr per_op_list<int> op_counts{
      {sizes.ops, gradient_sizes.input_ops, gradient_sizes.weight_ops, recomputed.ops}};
  /// A constant for each list, so that each has an evaluation budget.
  template <op_list L>
  static constexpr auto fused_list =
      fuse_list(ops_of<L>(), repetitions, uses[L], read_once, stage_of_unit.items,
                fixed<op_counts[L]>{}, fixed<counted.operands[L]>{});
  static constexpr per_op_list<fused_view> fused_lists{
      {fused_list<op_list::forward>, fused_list<op_list::input_gradients>,
       fused_list<op_list::weight_gradients>, fused_list<op_list::recompute>}};
  static constexpr kernel_lists kernels{ops, uses, fused_lists, read_once};

  // ---- kernel groups, for the backend to instantiate ----

  static constexpr auto numbered =
      number_groups(kernels, fixed<fused_list<op_list::recompute>.distinct_count>{},
                    fixed<count_distinct(fused_lists)>{});
  static constexpr group_numbers numbers = numbered.table();
  static constexpr int groups = numbers.count;
  /// The description of each kernel group, by number.
  static constexpr view<group> shapes{numbered.shapes.items, groups};
  static constexpr group const& group_at(int g) { return shapes[g]; }
  static constexpr auto written = find_written(shapes.items, fixed<groups>{});

  // ---- what launches are made from ----

  /// The numbers of elements, by parameter of the model.
  static constexpr auto parameter_elements = [](auto...) {
    view<parameter> const all = outline.parameters;
    list<long, sizes.parameters> n;
    for (int p = 0; p < all.count; ++p) n[p] = all.items[p].elements();
    return n;
  }();
  static constexpr launch_source for_launches{
      fused_lists, numbers, written.items, values, {parameter_elements.items, sizes.parameters}};
};

/// Policy Recompute where some stages or micro-batches keep all values, so that forward stores
/// every value.
template <recompute_policy Recompute>
struct keeps_in_some : Recompute {
  static constexpr bool keeps_last = Recompute::recomputes;
};

/// Model M compiled: its stages as constants, for the passes over single stages and the runtime.
///
/// SplitsBackward: the schedule runs B and W apart, so values that B makes for W must outlive B.
/// RecomputesAhead: the schedule runs R apart, so values that R makes must outlive R.
template <class M, int Stages, class Cutter, int Samples, number_widths Widths, bool SplitsBackward,
          class Recompute, bool RecomputesAhead = false, bool InputGradients = false>
struct compilation
    : fused_model<M, Stages, Cutter, Samples, Widths,
                  std::conditional_t<RecomputesAhead, keeps_in_some<Recompute>, Recompute>,
                  InputGradients> {
  using fused = typename compilation::fused_model;
  static constexpr bool splits_backward = SplitsBackward, recomputes_ahead = RecomputesAhead;

  /// The compiled model as one value, which the passes over single stages read.
  static constexpr compiled_model whole = [](auto...) {
    return compiled_model{fused::outline.parameters,
                          fused::transposed.items,
                          fused::loss,
                          fused::logits,
                          fused::stages,
                          fused::cuts.items,
                          fused::stage_of_unit.items,
                          fused::values,
                          fused::boundaries,
                          fused::recomputed.dropped.items,
                          fused::fused_lists,
                          fused::logits_read,
                          fused::numbers,
                          fused::written.items,
                          splits_backward,
                          recomputes_ahead,
                          {fused::loss_inputs.items + 1, fused::loss_inputs.size() - 1}};
  }();
  static constexpr auto ranges =
      find_ranges(fused::forward, fused::backward, whole, fixed<fused::stages>{});

  /// The programs and the memory of stage S, with all values stored, or with values dropped and
  /// recomputed. Chains: the backend's chain rule, see passes/chains.hpp.
  template <int S, bool Drops, class Chains = no_chains>
  using programs = stage_programs<compilation, S, Drops, Chains>;
};

}  // namespace pp::detail
