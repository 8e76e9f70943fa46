// SPDX-License-Identifier: BSL-1.0
//
// Batch norm: each column is normalised over all rows of a group of samples, which is a micro-batch
// or, with SyncOver, a part of a micro-batch. Sums over rows are kernels of their own, whose parts
// own columns; then rows are normalised one by one, each followed by its epilogue. Samples that
// only fill up the last micro-batch are in no sum. These loops only count and address: they are
// compiled once for all instruction sets, and call the functions of per_isa/batch_norm.inl.
#pragma once

#include <cstring>

#include <pipe/backend/host/arguments.hpp>
#include <pipe/backend/host/parts.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/passes/group.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// The functions of one instruction set that the loops call, for values of type V.
template <class T, class V>
struct batch_set {
  void (*statistics)(extent rows, int n, part_range own, T epsilon, V const* x,
                     T* statistics) = nullptr;
  void (*norm_row)(int n, V const* x, T const* statistics, V const* gamma, V const* beta,
                   T* y) = nullptr;
  /// Sums of dy * xhat and of dy over rows, in `columns` of n.
  void (*sums)(extent rows, extent columns, int n, V const* dy, V const* x, T const* statistics,
               T* sums) = nullptr;
  void (*gradient_row)(int n, V const* dy, V const* x, T const* statistics, V const* gamma,
                       T const* means, T* dx) = nullptr;
};
/// The number of rows of a micro-batch's real samples, `rows` for each sample.
template <class T>
extent real_rows(arguments<T> const& a, int rows, int samples) {
  return extent(rows) * (a.valid_samples < samples ? a.valid_samples : samples);
}
/// Calls run(g, rows) for each group g of samples that has rows in `own`; rows: the rows of the
/// group that are in `own`.
template <class Run>
void for_groups(detail::batch_attributes const& of, int sample_rows, int samples, part_range own,
                Run const& run) {
  extent const each = extent(sample_rows) * of.group_size(samples);
  for (extent r = own.begin; r < own.end;) {
    extent const g = r / each;
    part_range const part = within(part_range{r, own.end}, (g + 1) * each);
    run(g, part);
    r = part.end;
  }
}
/// to[c] (+)= from[c]
template <class T>
void add_to_sum(int n, T const* from, T* to, bool accumulate) {
  for (int c = 0; c < n; ++c) to[c] = accumulate ? to[c] + from[c] : from[c];
}

/// The kernel of op_kind::batch_statistics.
template <class T, class V = T>
PIPE_ONE_COPY void batch_statistics(batch_set<T, V> const& set, arguments<T> const& a,
                                    detail::group const& g, int samples) {
  detail::batch_attributes const of = g.attributes.batch();
  int const n = g.columns;
  part_range const own = own_part(n, column_alignment<T>, a.part, a.parts);
  extent const rows = real_rows(a, of.rows, samples);
  bool const is_running = !a.training || of.is_constant;
  part_range const all{0, extent(of.rows) * samples};
  for_groups(of, of.rows, samples, all, [&](extent i, part_range group) {
    T* const to = a.at(g.out[0]) + i * 3 * n;
    extent const real = within(group, rows).size();
    if (!is_running && real > 0)
      return set.statistics(real, n, own, T(of.epsilon),
                            a.template values<V>(g.in[0]) + group.begin * n, to);
    for (extent c = own.begin; c < own.end; ++c) {
      to[c] = is_running ? a.at(g.in[1])[c] : T(0);
      to[n + c] = is_running ? T(1) / libm::sqrt(a.at(g.in[2])[c] + T(of.epsilon)) : T(0);
      to[2 * n + c] = is_running ? a.at(g.in[2])[c] : T(0);
    }
  });
}

/// The kernel of op_kind::batch_norm.
template <class T, class V = T>
PIPE_ONE_COPY void batch_norm(batch_set<T, V> const& set, arguments<T> const& a,
                              detail::group const& g, int samples, row_finish<T> finish) {
  int const n = g.columns;
  part_range const own = own_part(extent(g.rows) * samples, 1, a.part, a.parts);
  for_groups(g.attributes.batch(), g.rows, samples, own, [&](extent i, part_range rows) {
    T const* const statistics = a.at(g.in[1]) + i * 3 * n;
    for (extent r = rows.begin; r < rows.end; ++r) {
      T* const y = finish == nullptr ? a.at(g.out[0]) + r * n : static_cast<T*>(a.workspace);
      set.norm_row(n, a.template values<V>(g.in[0]) + r * n, statistics,
                   a.template maybe_values<V>(g.in[2]), a.template maybe_values<V>(g.in[3]), y);
      if (finish != nullptr) finish(a, r, y);
    }
  });
}

/// The kernel of op_kind::batch_sums.
template <class T, class V = T>
PIPE_ONE_COPY void batch_sums(batch_set<T, V> const& set, arguments<T> const& a,
                              detail::group const& g, int samples) {
  detail::batch_attributes const of = g.attributes.batch();
  int const n = g.columns;
  part_range const own = own_part(n, column_alignment<T>, a.part, a.parts),
                   real{0, real_rows(a, of.rows, samples)};
  for_groups(of, of.rows, samples, real, [&](extent i, part_range rows) {
    extent const from = rows.begin * n + own.begin;
    set.sums(rows.size(), own.size(), n, a.template values<V>(g.in[0]) + from,
             a.template values<V>(g.in[1]) + from, a.at(g.in[2]) + i * 3 * n + own.begin,
             a.at(g.out[0]) + i * 2 * n + own.begin);
  });
}

/// The kernel of op_kind::batch_norm_gradient.
template <class T, class V = T>
PIPE_ONE_COPY void batch_norm_gradient(batch_set<T, V> const& set, arguments<T> const& a,
                                       detail::group const& g, int samples, row_finish<T> finish) {
  detail::batch_attributes const of = g.attributes.batch();
  int const n = g.columns;
  T* const buffer = static_cast<T*>(a.workspace);
  extent const real = real_rows(a, g.rows, samples), each = extent(g.rows) * of.group_size(samples);
  T const* const sums = a.maybe(g.in[3]);
  V const* const gamma = a.template maybe_values<V>(g.in[4]);
  T* const means = sums != nullptr ? buffer + n : nullptr;
  part_range const own = own_part(extent(g.rows) * samples, 1, a.part, a.parts);
  for_groups(of, g.rows, samples, own, [&](extent i, part_range rows) {
    extent const count = within(part_range{i * each, (i + 1) * each}, real).size();
    for (int c = 0; sums != nullptr && count > 0 && c < 2 * n; ++c)
      means[c] = sums[i * 2 * n + c] * (gamma != nullptr ? T(gamma[c % n]) : T(1)) / T(count);
    for (extent r = rows.begin; r < rows.end; ++r) {
      T* const dx = finish == nullptr ? a.at(g.out[0]) + r * n : buffer;
      if (r < real)
        set.gradient_row(n, a.template values<V>(g.in[0]) + r * n,
                         a.template values<V>(g.in[1]) + r * n, a.at(g.in[2]) + i * 3 * n, gamma,
                         means, dx);
      else
        std::memset(dx, 0, sizeof(T) * std::size_t(n));
      if (finish != nullptr) finish(a, r, dx);
    }
  });
}

/// The kernel of op_kind::batch_parameter_gradient.
template <class T>
PIPE_ONE_COPY void batch_parameter_gradient(arguments<T> const& a, detail::group const& g,
                                            int samples) {
  part_range const own = own_part(g.columns, column_alignment<T>, a.part, a.parts),
                   real{0, real_rows(a, 1, samples)};
  for_groups(g.attributes.batch(), 1, samples, real, [&](extent of, part_range) {
    for (int i = 0; i < 2; ++i)
      if (auto* const to = a.maybe(g.out[i]))
        add_to_sum(int(own.size()), a.at(g.in[0]) + (2 * of + i) * g.columns + own.begin,
                   to + own.begin, a.accumulate || of > 0);
  });
}

/// The kernel of op_kind::batch_running_sums.
template <class T>
PIPE_ONE_COPY void batch_running_sums(arguments<T> const& a, detail::group const& g, int samples) {
  detail::batch_attributes const of = g.attributes.batch();
  int const n = g.columns;
  T const* const running = a.at(g.in[1]);
  part_range const own = own_part(n, column_alignment<T>, a.part, a.parts),
                   real{0, real_rows(a, of.rows, samples)};
  for_groups(of, of.rows, samples, real, [&](extent i, part_range group) {
    T const* const statistics = a.at(g.in[0]) + i * 3 * n;
    T const rows = T(group.size());
    for (extent c = own.begin; c < own.end; ++c) {
      T const d = statistics[c] - running[c], sum = rows * d,
              squares = rows * (statistics[2 * n + c] + d * d);
      add_to_sum(1, &sum, a.at(g.out[0]) + c, a.accumulate || i > 0);
      add_to_sum(1, &squares, a.at(g.out[1]) + c, a.accumulate || i > 0);
    }
  });
}

}  // namespace pp::host
PIPE_OPTIMIZED_END
