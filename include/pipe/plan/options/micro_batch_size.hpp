// SPDX-License-Identifier: BSL-1.0
//
// The number of samples in a micro-batch.
#pragma once

#include <pipe/base/list.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/options/micro_batches.hpp>

namespace pp {

namespace option_family {
struct micro_batch_size;
}

/// N samples in each micro-batch (default 1). Must be positive.
template <int N>
struct MicroBatchSize {
  using family = option_family::micro_batch_size;
  static constexpr int value = N;
};

namespace detail {

/// Upper bounds: samples in a mini-batch (indices fit an int), and elements of a value for one
/// micro-batch (byte offsets stay far from 2^63).
inline constexpr long most_samples = (1L << 31) - 1, most_numbers_of_value = 1L << 36;

/// Largest micro-batch that a model supports: the rows of every op and the elements of every value
/// are bounded, and statistics of groups have numbers that fit an int.
constexpr long most_samples_at_once(graph_view const& g) {
  long rows = g.output.rows(), numbers = 0;
  for (op const& o : g.ops) {
    if (o.rows > rows) rows = o.rows;
    if (norms_groups(o) && o.rows * long(o.columns) > rows) rows = o.rows * long(o.columns);
  }
  for (value const& v : g.values)
    if (v.elements > numbers) numbers = v.elements;
  long const by_rows = most_samples / rows, by_numbers = most_numbers_of_value / numbers;
  return by_rows < by_numbers ? by_rows : by_numbers;
}

/// Whether the model has a batch norm without positions: a micro-batch then needs two samples for a
/// variance.
constexpr bool norms_samples(graph_view const& g) {
  for (parameter const& p : g.parameters)
    if (p.is_committed() && p.commit.is_variance() && p.commit.terms == 1) return true;
  return false;
}
/// The samples of a group in micro-batches of `samples` of an op that takes statistics of groups
/// without positions; else 0.
constexpr int group_without_positions(op const& o, int samples) {
  if (o.kind != op_kind::batch_statistics) return 0;
  batch_attributes const& of = o.attributes.batch();
  return of.rows == 1 && !of.is_constant ? of.group_size(samples) : 0;
}
/// By op, the samples of a group in micro-batches of Size, if it takes statistics of groups without
/// positions; else 0.
template <class M, int Size>
constexpr auto groups_without_positions() {
  list<int, M::graph.size.ops> each;
  for (int i = 0; i < M::graph.size.ops; ++i)
    each[i] = group_without_positions(M::graph.ops[i], Size);
  return each;
}
/// Whether a batch norm of the model has groups of one number in micro-batches of `samples`.
constexpr bool norms_one_number(graph_view const& g, int samples) {
  if (!norms_samples(g)) return false;
  for (op const& o : g.ops)
    if (group_without_positions(o, samples) == 1) return true;
  return false;
}
/// Whether a contrastive loss of the model has one row in micro-batches of `samples`: it would be
/// 0.
constexpr bool contrasts_one_row(graph_view const& g, int samples) {
  for (op const& o : g.ops)
    if (o.kind == op_kind::contrast && long(o.rows) * samples < 2) return true;
  return false;
}
/// The first op whose groups of samples do not make up a micro-batch of `samples`, or -1.
constexpr int first_with_parts_of_groups(graph_view const& g, int samples) {
  for (int i = 0; i < g.ops.count; ++i)
    if (norms_groups(g.ops[i]) && samples % g.ops[i].attributes.batch().samples != 0) return i;
  return -1;
}

}  // namespace detail

/// The family of micro-batch sizes. A mini-batch has at most most_samples samples.
struct option_family::micro_batch_size : detail::any_family {
  using fallback = MicroBatchSize<1>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<micro_batch_size>;
    using count = typename Options::template get<micro_batches>;
    if constexpr (option::value < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else if constexpr (long(count::value) * option::value > detail::most_samples)
      return detail::diagnosis_of<wrong::number_is_too_large, count, option,
                                  wrong::AtMost<detail::most_samples>>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
  template <class M, class Options>
  static constexpr auto diagnose_for() {
    using option = typename Options::template get<micro_batch_size>;
    constexpr long most = detail::most_samples_at_once(M::graph);
    if constexpr (option::value > most)
      return detail::diagnosis_of<wrong::micro_batch_is_too_large, M, option,
                                  wrong::AtMost<most>>();
    else if constexpr (constexpr int parts =
                           detail::first_with_parts_of_groups(M::graph, option::value);
                       parts >= 0)
      return detail::diagnosis_of<wrong::sync_over_must_divide_the_micro_batch,
                                  detail::leaf_at<M::graph.ops[parts].leaf, typename M::leaves>,
                                  option>();
    else if constexpr (detail::norms_one_number(M::graph, option::value))
      return detail::diagnosis_of<wrong::micro_batch_norms_one_number, M, option>();
    else if constexpr (detail::contrasts_one_row(M::graph, option::value))
      return detail::diagnosis_of<wrong::micro_batch_contrasts_one_row, M, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp
