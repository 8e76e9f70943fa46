// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches of samples with several lengths: the rows of each input of token ids that are there
// are copied densely, micro-batch by micro-batch, into memory of the trainer, with a list of the
// samples' segments. Inputs and labels with as many numbers for each sample are copied as they are.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
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
#include <pipe/train/parts/prefetched.hpp>
#include <pipe/train/parts/sample_lengths.hpp>

namespace pp::detail {

/// A sample of a mini-batch: its rows that are there, and the first of them among the rows of the
/// caller's arrays.
struct sample_rows {
  int length = 0;
  long place = 0;
};

/// An input in messages about its lengths, none for the first one.
template <class M, int Input>
constexpr batch_part lengths_part() {
  return lengths_part(Input == 0 ? std::string_view() : input_name<M, Input>());
}

/// The mini-batches of compiled pipeline P with Lengths, in memory that is allocated once.
/// accumulations: of a mini-batch, one for each replica if there are several
template <class P>
class dense_batches {
  using M = typename P::model;
  using element = typename P::element;
  using label_type = std::conditional_t<M::labels_are_ids, int, element>;
  static constexpr auto const& records = model_tables<M>::inputs;
  static constexpr auto const& outputs = model_tables<M>::loss_inputs;
  static constexpr int inputs = M::graph_type::size.inputs;
  static constexpr int each = P::samples, block = P::lengths::block, most = most_segments<P>();
  static constexpr int loss_axis = outputs[0].axis;
  static constexpr long labels_of_micro_batch = each * model_tables<M>::labels;

  static constexpr int context_of(int input) { return int(records[input].form.elements()); }
  static constexpr int capacity_of(int input) { return each * context_of(input); }

 public:
  [[gnu::cold]] explicit dense_batches(int accumulations)
      : micro_batches(accumulations * P::micro_batches) {
    for (int i = 0; i < inputs; ++i) {
      long const rows = long(micro_batches) * capacity_of(i);
      if (is_axis(records[i], i)) {
        copies_[i].samples = heap_array<sample_rows>(micro_batches * most);
        copies_[i].segment = heap_array<int>(rows);
        copies_[i].first = heap_array<int>(micro_batches * (most + 1));
        copies_[i].given = heap_array<int>(micro_batches * most);
        copies_[i].place = heap_array<long>(micro_batches * most);
      }
      if (records[i].is_ids)
        copies_[i].ids = heap_array<int>(rows);
      else
        copies_[i].numbers = heap_array<element>(rows);
    }
  }
  /// Enters a mini-batch in a job, as take_inputs and take_labels do.
  ///
  /// throws: data_error for lengths, ids, labels or sizes out of range
  template <class Batch>
  void take(Batch const& b, job& j) {
    bool const reads_labels = j.what != job::kind::infer;
    int n = 0;
    for_each_input<M>([&](auto input) { find_samples<input()>(b, reads_labels, n); });
    if (reads_labels) {
      check_size({"labels"}, b.labels.size(), numbers_of(loss_axis, model_tables<M>::labels, b, n));
      count_loss_terms(b, j.loss);
    }
    long done = 0;
    for (int mb = 0; mb < micro_batches; ++mb) {
      int const count = count_in(b.micro_batches, mb, n - done);
      for_each_input<M>([&](auto input) {
        lists_[mb * inputs + input()].count = count;
        lists_[mb * inputs + input()].first_sample = done;
        if constexpr (is_axis(records[input()], input()))
          list_segments(input(), lengths_part<M, input()>(), mb);
      });
      done += count;
    }
    if (done < n) reject_rest(done, n);
    for_each_input<M>([&](auto input) { enter<input()>(b, n, reads_labels, j); });
    if (reads_labels)
      copy(loss_axis, b.labels.data(), n, model_tables<M>::labels, label_type(-1), labels_.begin());
    j.batch.samples = n;
    j.batch.label = reads_labels ? labels_.begin() : nullptr;
    j.batch.segments = lists_.begin();
    j.batch.axes = inputs;
    j.batch.place = data_place::loaded;
    // All processes have the whole mini-batch: what they make of it is compared.
    if constexpr (P::transport::copies) hash_rows<P>(j, micro_batches);
  }
  /// Enters the array of an output in a job that has taken the mini-batch: of the rows that are
  /// there, one behind the other, for an axis with lengths, else of whole samples, whose rows of
  /// padding become zeros.
  ///
  /// throws: data_error for a wrong size
  template <int Output, class Batch, class Outputs>
  void take_output(Batch const& b, batch_part of, Outputs const& values, job& j) const {
    constexpr loss_input from = outputs[Output];
    check_size(of, values.size(), numbers_of(from.axis, from.elements, b, j.batch.samples));
    if constexpr (from.axis != 0)
      if (lengths_of_input<from.axis - 1>(b).empty()) {
        constexpr long context = context_of(from.axis - 1), columns = from.elements / context;
        for (int s = 0; s < j.batch.samples; ++s) {
          sample_rows const& rows = copies_[from.axis - 1].samples[s];
          std::memset(values.data() + (rows.place + rows.length) * columns, 0,
                      sizeof(*values.data()) * std::size_t((context - rows.length) * columns));
        }
      }
    j.batch.output[Output] = values.data();
  }

 private:
  /// The numbers of an array of a mini-batch of n samples, `per_sample` of a padded one, by the
  /// positions of an axis or, on axis 0, by sample.
  template <class Batch>
  static std::size_t numbers_of(int axis, long per_sample, Batch const& b, int n) {
    std::size_t all = std::size_t(n * per_sample);
    for_each_input<M>([&](auto input) {
      if (axis == input() + 1 && !lengths_of_input<input()>(b).empty())
        all = input_of<input()>(b).size() * std::size_t(per_sample / context_of(input()));
    });
    return all;
  }
  /// The copy of an input: ids or numbers. Of an axis also the samples of the mini-batch, and the
  /// arrays of the lists of segments.
  struct input_copy {
    heap_array<int> ids;
    heap_array<element> numbers;
    heap_array<sample_rows> samples;
    heap_array<int> segment, first, given;
    heap_array<long> place;
  };

  /// Checks an input of a mini-batch of n samples, and finds its samples if it is an axis. The
  /// first input determines n.
  template <int Input, class Batch>
  void find_samples(Batch const& b, bool with_labels, int& n) {
    constexpr input_record in = records[Input];
    if (in.of_loss && !with_labels) return;
    int const end = micro_batches * (b.micro_batches.empty() ? each : most);
    constexpr batch_part part = lengths_part<M, Input>();
    std::span<int const> const lengths = lengths_of_input<Input>(b);
    auto const values = input_of<Input>(b);
    bool const is_ragged = is_axis(in, Input) && !lengths.empty();
    if (!is_ragged && Input == 0)
      n = count_samples(values.size(), std::size_t(context_of(Input)), end);
    if (is_ragged && lengths.size() > std::size_t(end))
      throw_error<data_error>({part.what, part.quote(), part.name, part.quote(), ": expected 1 to ",
                               end, " samples, got ", lengths.size()});
    if (is_ragged && Input == 0) n = int(lengths.size());
    if (!lengths.empty()) check_lengths(part, lengths.size(), is_ragged ? std::size_t(n) : 0);
    if (!is_ragged && Input > 0)
      check_size({"input ", input_name<M, Input>()}, values.size(),
                 numbers_of(in.axis, in.form.elements(), b, n));
    if constexpr (in.is_ids) host_checks::ids("token", values, -1, in.vocabulary);
    if constexpr (is_axis(in, Input)) {
      sample_rows* to = copies_[Input].samples.begin();
      if (is_ragged)
        return for_each_length(
            part, lengths, values.size(), context_of(Input),
            [&](int length, std::size_t place) { *to++ = {length, long(place)}; });
      padded_ids const ids = padded_ids_of<Input>(b, with_labels);
      for (long s = 0; s < n; ++s) *to++ = {ids.length_of(s), s * context_of(Input)};
    }
  }
  /// The samples of a micro-batch, if `left` are left.
  ///
  /// throws: data_error for a number of samples that cannot be
  int count_in(std::span<int const> counts, int mb, long left) const {
    if (counts.empty()) return int(left < each ? left : each);
    if (!has_rows_alone<M>)
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
  /// Lists the segments of an axis in a micro-batch. A sample without a row has a block of padding,
  /// so that no segment is empty.
  ///
  /// throws: data_error for more rows than are planned
  void list_segments(int input, batch_part of_input, int mb) {
    input_copy& copy = copies_[input];
    segment_list& list = lists_[mb * inputs + input];
    int const capacity = capacity_of(input);
    int* const first = copy.first.begin() + mb * (most + 1);
    int* const given = copy.given.begin() + mb * most;
    long* const place = copy.place.begin() + mb * most;
    int* const segment = copy.segment.begin() + long(mb) * capacity;
    int row = 0;
    for (int s = 0; s < list.count; ++s) {
      sample_rows const of = copy.samples[list.first_sample + s];
      int const rows = row_room{capacity, most, block}.rows_of(of.length);
      if (row + rows > capacity)
        throw_error<data_error>({"micro_batches: the samples of micro-batch ", mb,
                                 " have more rows", of_input.name.empty() ? "" : " of input ",
                                 of_input.quote(), of_input.name, of_input.quote(), " than ",
                                 capacity, ", MicroBatchSize times the context"});
      first[s] = row;
      given[s] = of.length;
      place[s] = of.place;
      for (int r = row; r < row + rows; ++r) segment[r] = s;
      row += rows;
    }
    first[list.count] = row;
    list.rows = row;
    list.planned_rows = capacity;
    list.first = first;
    list.segment = segment;
    list.given = given;
    list.place = place;
  }
  /// Enters the copy of an input in a job.
  template <int Input, class Batch>
  void enter(Batch const& b, int n, bool with_labels, job& j) {
    constexpr input_record in = records[Input];
    if (in.of_loss && !with_labels) return;
    auto const enter_copy = [&](auto* to) {
      using number = std::remove_pointer_t<decltype(to)>;
      copy(in.axis, input_of<Input>(b).data(), n, in.form.elements(), number(in.is_ids ? -1 : 0),
           to);
      j.batch.input[Input] = to;
    };
    if constexpr (in.is_ids)
      enter_copy(copies_[Input].ids.begin());
    else
      enter_copy(copies_[Input].numbers.begin());
  }

  /// Copies an array of n samples, `per_sample` numbers of a padded one: on axis 0 whole samples,
  /// and zeros up to the end of the last micro-batch; else the rows of segments, which `padding`
  /// fills up.
  template <class Number>
  void copy(int axis, Number const* from, long n, long per_sample, Number padding,
            Number* to) const {
    if (axis == 0) {
      long const end = n * per_sample, whole = (n + each - 1) / each * each * per_sample;
      if (end > 0) std::memcpy(to, from, sizeof(Number) * std::size_t(end));
      for (long i = end; i < whole; ++i) to[i] = Number(0);
      return;
    }
    long const columns = per_sample / context_of(axis - 1);
    for (int mb = 0; mb < micro_batches; ++mb, to += each * per_sample) {
      segment_list const& list = lists_[mb * inputs + axis - 1];
      for (int s = 0; s < list.count; ++s) {
        Number *row = to + list.first[s] * columns, *const end = to + list.first[s + 1] * columns;
        long const count = list.given[s] * columns;
        std::memcpy(row, from + list.place[s] * columns, sizeof(Number) * std::size_t(count));
        for (row += count; row != end; ++row) *row = padding;
      }
    }
  }

  int micro_batches;
  input_copy copies_[inputs];
  heap_array<label_type> labels_{micro_batches * labels_of_micro_batch};
  heap_array<segment_list> lists_{long(micro_batches) * inputs};
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
