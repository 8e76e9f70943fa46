// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches of samples with several lengths: the rows that are there are copied densely,
// micro-batch by micro-batch, into memory of the trainer, with a list of the samples' segments.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include <pipe/backend/segments.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/batch_check.hpp>
#include <pipe/data/length_order.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/train/parts/batch.hpp>
#include <pipe/train/parts/hash_rows.hpp>
#include <pipe/train/parts/loss_terms.hpp>
#include <pipe/train/parts/prefetched.hpp>

namespace pp::detail {

/// A sample of a mini-batch: its rows that are there, and the first of them among the rows of the
/// caller's arrays.
struct sample_rows {
  int length = 0;
  long place = 0;
};

/// The samples of a mini-batch of `context` positions each at most, as they are given: padded to
/// the context or, with lengths, one behind the other.
///
/// throws: data_error for lengths out of range, or that do not add up to the ids
inline void take_lengths(std::span<int const> lengths, std::size_t ids, int context, int most,
                         sample_rows* samples) {
  if (lengths.size() > std::size_t(most))
    throw_error<data_error>({"lengths: expected 1 to ", most, " samples, got ", lengths.size()});
  check_lengths(lengths, context, ids);
  long place = 0;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    samples[s] = {lengths[s], place};
    place += lengths[s];
  }
}

/// The number of rows up to the last one of a padded sample that has an id or a label. labels: null
/// if there are none by position
inline int length_of(int const* ids, int const* labels, int context) {
  int n = context;
  while (n > 0 && ids[n - 1] < 0 && (labels == nullptr || labels[n - 1] < 0)) --n;
  return n;
}

/// The lengths of padded samples of model M; labels are read if each position has one.
template <class M, class Label>
std::vector<int> lengths_of(int const* ids, [[maybe_unused]] Label const* labels,
                            std::size_t samples) {
  constexpr int context = int(model_tables<M>::inputs[0].form.elements());
  std::vector<int> all;
  all.reserve(samples);
  for (std::size_t s = 0; s < samples; ++s, ids += context) {
    int const* of_rows = nullptr;
    if constexpr (M::graph.loss().axis == 1 && std::is_same_v<Label, int>)  // of the first input
      of_rows = labels + s * std::size_t(context);
    all.push_back(length_of(ids, of_rows, context));
  }
  return all;
}

/// The mini-batches of compiled pipeline P with Lengths, in memory that is allocated once.
/// accumulations: of a mini-batch, one for each replica if there are several
template <class P>
class dense_batches {
  using M = typename P::model;
  using label_type = std::conditional_t<M::labels_are_ids, int, typename P::element>;
  static constexpr int each = P::samples, block = P::lengths::block,
                       context = int(model_tables<M>::inputs[0].form.elements());
  static constexpr int capacity = each * context;  // rows of a micro-batch
  static constexpr bool by_row = has_output_rows<M>;
  // Segments of a micro-batch, each of a block at least; one row for each sample is planned for
  // `each` samples.
  static constexpr int most = !by_row                                      ? each
                              : each * P::lengths::most < capacity / block ? each * P::lengths::most
                                                                           : capacity / block;
  static constexpr long labels_of_micro_batch = each * model_tables<M>::labels;

 public:
  [[gnu::cold]] explicit dense_batches(int accumulations)
      : micro_batches(accumulations * P::micro_batches) {}

  /// Enters a mini-batch in a job, as take_inputs and take_labels do.
  ///
  /// throws: data_error for lengths, ids, labels or sizes out of range
  template <class Batch>
  void take(Batch const& b, job& j) {
    bool const reads_labels = j.what != job::kind::infer;
    int const n = find_samples(b, by_row && reads_labels);
    host_checks::ids("token", b.inputs, -1, model_tables<M>::inputs[0].vocabulary);
    if (reads_labels) {
      check_size({"labels"}, b.labels.size(),
                 by_row ? b.inputs.size() : std::size_t(n * model_tables<M>::labels));
      j.loss.count(loss_terms<typename M::loss>(
          std::span<label_type const>(b.labels), std::span<typename P::element const>(),
          model_tables<M>::output.columns(), long(n) * model_tables<M>::output.rows()));
    }
    long done = 0;
    for (int mb = 0; mb < micro_batches; ++mb) {
      int const count = count_in(b.micro_batches, mb, n - done);
      fill(mb, done, count, b.inputs.data(), reads_labels ? b.labels.data() : nullptr);
      done += count;
    }
    if (done < n) reject_rest(done, n);
    j.batch.samples = n;
    j.batch.input[0] = ids_.begin();
    j.batch.label = reads_labels ? labels_.begin() : nullptr;
    j.batch.segments = lists_.begin();
    j.batch.place = data_place::loaded;
    // All processes have the whole mini-batch: what they make of it is compared.
    if constexpr (P::transport::copies) hash_rows<P>(j, micro_batches);
  }
  /// Enters the array of the output in a job that has taken the mini-batch: of the rows that are
  /// there, one behind the other, for a mini-batch with lengths, else of whole samples, whose rows
  /// of padding become zeros.
  ///
  /// throws: data_error for a wrong size
  template <class Batch, class Outputs>
  void take_output(Batch const& b, batch_part of, Outputs const& outputs, job& j) const {
    long const columns = model_tables<M>::output.columns();
    bool const are_rows = by_row && !b.lengths.empty();
    check_size(of, outputs.size(),
               std::size_t(are_rows ? long(b.inputs.size()) * columns
                                    : j.batch.samples * model_tables<M>::output.elements()));
    for (int s = 0; by_row && !are_rows && s < j.batch.samples; ++s) {
      sample_rows const& rows = samples_[s];
      std::memset(outputs.data() + (rows.place + rows.length) * columns, 0,
                  sizeof(*outputs.data()) * std::size_t((context - rows.length) * columns));
    }
    j.batch.output[0] = outputs.data();
  }

 private:
  /// Finds the samples of a mini-batch; returns their number.
  template <class Batch>
  int find_samples(Batch const& b, bool with_labels) {
    int const end = b.micro_batches.empty() ? micro_batches * each : int(samples_.size());
    if (!b.lengths.empty()) {
      take_lengths(b.lengths, b.inputs.size(), context, end, samples_.begin());
      return int(b.lengths.size());
    }
    int const n = count_samples(b.inputs.size(), std::size_t(context), end);
    int const* of_rows = nullptr;
    if constexpr (by_row)
      if (with_labels && b.labels.size() == b.inputs.size()) of_rows = b.labels.data();
    for (long s = 0; s < n; ++s)
      samples_[s] = {length_of(b.inputs.data() + s * context,
                               of_rows == nullptr ? nullptr : of_rows + s * context, context),
                     s * context};
    return n;
  }
  /// The samples of a micro-batch, if `left` are left.
  ///
  /// throws: data_error for a number of samples that cannot be
  int count_in(std::span<int const> counts, int mb, long left) const {
    if (counts.empty()) return int(left < each ? left : each);
    if (!by_row)
      throw_error<data_error>(
          {"micro_batches: this model makes one row of each sample, so each "
           "micro-batch has MicroBatchSize samples"});
    if (counts.size() > std::size_t(micro_batches))
      throw_error<data_error>(
          {"micro_batches: expected at most ", micro_batches, " numbers, got ", counts.size()});
    if (std::size_t(mb) >= counts.size()) return 0;
    int const count = counts[std::size_t(mb)], end = int(left < most ? left : most);
    if (count < 1 || count > end)
      throw_error<data_error>(
          {"micro_batches: ", count, " samples in micro-batch ", mb, " are not in [1, ", end, "]"});
    return count;
  }
  [[noreturn, gnu::cold]] static void reject_rest(long done, long given) {
    throw_error<data_error>(
        {"micro_batches: their sum is ", done, ", but there are ", given, " samples"});
  }
  /// Copies the rows of a micro-batch of `count` samples, and lists their segments. A sample
  /// without a row has a block of padding, so that no segment is empty.
  ///
  /// throws: data_error for more rows than are planned
  void fill(int mb, long from, int count, int const* ids, label_type const* labels) {
    int* const first = firsts_.begin() + mb * (most + 1);
    int* const given = given_.begin() + mb * most;
    long* const place = places_.begin() + mb * most;
    int* const segment = segments_.begin() + long(mb) * capacity;
    int* const to = ids_.begin() + long(mb) * capacity;
    int row = 0;
    for (int s = 0; s < count; ++s) {
      sample_rows const of = samples_[from + s];
      int const rows = row_room{capacity, most, block}.rows_of(of.length);
      if (row + rows > capacity)
        throw_error<data_error>({"micro_batches: the samples of micro-batch ", mb,
                                 " have more rows than ", capacity,
                                 ", MicroBatchSize times the context"});
      first[s] = row;
      given[s] = of.length;
      place[s] = of.place;
      copy_padded(ids + of.place, of.length, rows, to + row);
      for (int r = row; r < row + rows; ++r) segment[r] = s;
      if constexpr (by_row)
        if (labels != nullptr)
          copy_padded(labels + of.place, of.length, rows,
                      labels_.begin() + long(mb) * capacity + row);
      row += rows;
    }
    first[count] = row;
    if constexpr (!by_row)
      if (labels != nullptr) {
        long const of_sample = model_tables<M>::labels, here = count * of_sample;
        label_type* const label = labels_.begin() + mb * labels_of_micro_batch;
        std::memcpy(label, labels + mb * labels_of_micro_batch,
                    sizeof(label_type) * std::size_t(here));
        for (long i = here; i < labels_of_micro_batch; ++i) label[i] = label_type(0);
      }
    lists_[mb] = segment_list{row, count, from, capacity, first, segment, given, place};
  }

  /// to[0, rows) = from[0, count), and -1 behind them.
  static void copy_padded(int const* from, int count, int rows, int* to) {
    std::memcpy(to, from, sizeof(int) * std::size_t(count));
    for (int r = count; r < rows; ++r) to[r] = -1;
  }

  int micro_batches;
  heap_array<sample_rows> samples_{long(micro_batches) * most};
  heap_array<int> ids_{long(micro_batches) * capacity}, segments_{long(micro_batches) * capacity};
  heap_array<label_type> labels_{micro_batches * labels_of_micro_batch};
  heap_array<int> firsts_{long(micro_batches) * (most + 1)}, given_{long(micro_batches) * most};
  heap_array<long> places_{long(micro_batches) * most};
  heap_array<segment_list> lists_{micro_batches};
};

/// The same for a pipeline without Lengths, or without Prefetching: nothing.
template <bool Ahead>
struct no_dense_batches {
  explicit no_dense_batches(int) {}
};
template <class P>
using dense_batches_of =
    std::conditional_t<(P::lengths::block > 0), dense_batches<P>, no_dense_batches<false>>;

/// A mini-batch that is prefetched.
template <class Batch>
struct batch_ahead {
  Batch const& of;
};
/// The prefetched mini-batches of compiled pipeline P with Lengths, by their place in the queue: a
/// mini-batch stays until another one takes its place.
template <class P>
class dense_batches_ahead {
 public:
  [[gnu::cold]] explicit dense_batches_ahead(int accumulations)
      : all_{dense_batches<P>(accumulations), dense_batches<P>(accumulations)} {}
  dense_batches<P>& operator[](int place) { return all_[place]; }

 private:
  dense_batches<P> all_[prefetch_queue::most];
};
template <class P>
using dense_batches_ahead_of = std::conditional_t<(P::lengths::block > 0 && P::prefetching::is_on),
                                                  dense_batches_ahead<P>, no_dense_batches<true>>;

}  // namespace pp::detail
