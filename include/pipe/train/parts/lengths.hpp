// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches of samples with several lengths: the rows of each input of token ids that are there
// are copied densely, micro-batch by micro-batch, into memory of the trainer, with a list of the
// samples' segments. Inputs and labels with as many numbers for each sample are copied as they are.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
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
#include <pipe/train/parts/loss_terms.hpp>
#include <pipe/train/parts/prefetched.hpp>

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
  if constexpr (Input == 0)
    return {""};
  else
    return {" of input ", input_name<M, Input>()};
}

/// The samples of an input of a mini-batch, of `context` positions each at most, which lie one
/// behind the other.
///
/// throws: data_error for lengths out of range, or that do not add up to the ids
inline void take_lengths(batch_part of, std::span<int const> lengths, std::size_t ids, int context,
                         int most, sample_rows* samples) {
  if (lengths.size() > std::size_t(most))
    throw_error<data_error>({"lengths", of.what, of.quote(), of.name, of.quote(),
                             ": expected 1 to ", most, " samples, got ", lengths.size()});
  long sum = 0;
  for (std::size_t s = 0; s < lengths.size(); ++s) {
    if (lengths[s] < 0 || lengths[s] > context)
      throw_error<data_error>({"lengths", of.what, of.quote(), of.name, of.quote(), ": ",
                               lengths[s], " at position ", s, " is not in [0, ", context, "]"});
    samples[s] = {lengths[s], sum};
    sum += lengths[s];
  }
  if (std::size_t(sum) != ids)
    throw_error<data_error>({"lengths", of.what, of.quote(), of.name, of.quote(), ": their sum is ",
                             sum, ", but there are ", ids, " inputs"});
}

/// The number of rows up to the last one of a padded sample that has an id or a label. labels: null
/// if there are none by position
inline int length_of(int const* ids, int const* labels, int context) {
  int n = context;
  while (n > 0 && ids[n - 1] < 0 && (labels == nullptr || labels[n - 1] < 0)) --n;
  return n;
}

/// The labels of padded samples whose rows are those of input Input; null if there are none.
template <int Input, class Batch>
int const* labels_by_row_of([[maybe_unused]] Batch const& b) {
  if constexpr (Batch::model::graph.loss().axis == Input + 1 && Batch::model::labels_are_ids)
    if (b.labels.size() == input_of<Input>(b).size()) return b.labels.data();
  return nullptr;
}
/// The lengths of the samples of input Input, which is token ids: as given, or of padded samples.
template <int Input, class Batch>
std::vector<int> lengths_of(Batch const& b, std::size_t samples) {
  constexpr int context = int(model_tables<typename Batch::model>::inputs[Input].form.elements());
  std::span<int const> const given = lengths_of_input<Input>(b);
  std::vector<int> all(given.begin(), given.end());
  all.reserve(samples);
  int const* labels = labels_by_row_of<Input>(b);
  for (int const* ids = input_of<Input>(b).data(); all.size() < samples; ids += context) {
    all.push_back(length_of(ids, labels, context));
    if (labels != nullptr) labels += context;
  }
  return all;
}

/// Calls use(integral_constant of the number) for each input of model M.
template <class M, class Use>
constexpr void for_each_input(Use const& use) {
  [&]<int... Is>(std::integer_sequence<int, Is...>) {
    (use(std::integral_constant<int, Is>{}), ...);
  }(std::make_integer_sequence<int, M::graph_type::size.inputs>{});
}

/// The lengths of samples, each the sum over its inputs of token ids. longest: of all such sums; 0
/// if no input is token ids
template <class Batch>
std::vector<int> sums_of_lengths(Batch const& b, std::size_t samples, int& longest) {
  using M = typename Batch::model;
  std::vector<int> all(samples, 0);
  longest = 0;
  for_each_input<M>([&](auto input) {
    constexpr input_record in = model_tables<M>::inputs[input()];
    if constexpr (in.is_ids && !in.of_loss) {
      longest += int(in.form.elements());
      std::vector<int> const of = lengths_of<input()>(b, samples);
      for (std::size_t s = 0; s < samples; ++s) all[s] += of[s];
    }
  });
  return all;
}

/// The most samples of a micro-batch of compiled pipeline P with Lengths: segments have a block at
/// least, and values of whole samples, such as those of a pool, are planned for MicroBatchSize.
template <class P>
constexpr int most_segments() {
  using M = typename P::model;
  constexpr int each = P::samples;
  if (!has_rows_alone<M>) return each;
  int most = each * P::lengths::most;
  for (input_record const& in : model_tables<M>::inputs)
    if (int const blocks = int(each * in.form.elements()) / P::lengths::block;
        in.is_axis && blocks < most)
      most = blocks;
  return most;
}

/// The mini-batches of compiled pipeline P with Lengths, in memory that is allocated once.
/// accumulations: of a mini-batch, one for each replica if there are several
template <class P>
class dense_batches {
  using M = typename P::model;
  using element = typename P::element;
  using label_type = std::conditional_t<M::labels_are_ids, int, element>;
  static constexpr auto const& records = model_tables<M>::inputs;
  static constexpr int inputs = M::graph_type::size.inputs;
  static constexpr int each = P::samples, block = P::lengths::block, most = most_segments<P>();
  static constexpr int loss_axis = M::graph.loss().axis;
  static constexpr int loss_input = loss_axis == 0 ? 0 : loss_axis - 1;  // of an axis
  static constexpr long labels_of_micro_batch = each * model_tables<M>::labels;

  static constexpr int context_of(int input) { return int(records[input].form.elements()); }
  static constexpr int capacity_of(int input) { return each * context_of(input); }

 public:
  [[gnu::cold]] explicit dense_batches(int accumulations)
      : micro_batches(accumulations * P::micro_batches) {
    for (int i = 0; i < inputs; ++i) {
      long const rows = long(micro_batches) * capacity_of(i);
      if (records[i].is_axis) {
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
      check_size({"labels"}, b.labels.size(),
                 loss_axis != 0 ? input_of<loss_input>(b).size()
                                : std::size_t(n * model_tables<M>::labels));
      j.loss.count(loss_terms<typename M::loss>(
          std::span<label_type const>(b.labels), std::span<element const>(weights_of(b)),
          model_tables<M>::output.columns(), long(n) * model_tables<M>::output.rows()));
    }
    long done = 0;
    for (int mb = 0; mb < micro_batches; ++mb) {
      int const count = count_in(b.micro_batches, mb, n - done);
      for_each_input<M>([&](auto input) {
        lists_[mb * inputs + input()].count = count;
        lists_[mb * inputs + input()].first_sample = done;
        if constexpr (records[input()].is_axis)
          fill(input(), lengths_part<M, input()>(), mb, input_of<input()>(b).data(),
               reads_labels ? b.labels.data() : nullptr);
      });
      done += count;
    }
    if (done < n) reject_rest(done, n);
    for_each_input<M>([&](auto input) { enter<input()>(b, n, reads_labels, j); });
    if constexpr (loss_axis == 0)
      if (reads_labels) copy_samples(b.labels.data(), n, labels_of_micro_batch, labels_.begin());
    j.batch.samples = n;
    j.batch.label = reads_labels ? labels_.begin() : nullptr;
    j.batch.segments = lists_.begin();
    j.batch.axes = inputs;
    j.batch.place = data_place::loaded;
    // All processes have the whole mini-batch: what they make of it is compared.
    if constexpr (P::transport::copies) hash_rows<P>(j, micro_batches);
  }
  /// Enters the array of the output in a job that has taken the mini-batch: of the rows that are
  /// there, one behind the other, for an input with lengths, else of whole samples, whose rows of
  /// padding become zeros.
  ///
  /// throws: data_error for a wrong size
  template <class Batch, class Outputs>
  void take_output(Batch const& b, batch_part of, Outputs const& outputs, job& j) const {
    long const columns = model_tables<M>::output.columns();
    bool const are_rows = loss_axis != 0 && !lengths_of_input<loss_input>(b).empty();
    check_size(of, outputs.size(),
               std::size_t(are_rows ? long(input_of<loss_input>(b).size()) * columns
                                    : j.batch.samples * model_tables<M>::output.elements()));
    for (int s = 0; loss_axis != 0 && !are_rows && s < j.batch.samples; ++s) {
      sample_rows const& rows = copies_[loss_input].samples[s];
      std::memset(
          outputs.data() + (rows.place + rows.length) * columns, 0,
          sizeof(*outputs.data()) * std::size_t((context_of(loss_input) - rows.length) * columns));
    }
    j.batch.output[0] = outputs.data();
  }

 private:
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
    constexpr int per_sample = context_of(Input);
    if (in.of_loss && !with_labels) return;
    int const end = micro_batches * (b.micro_batches.empty() ? each : most);
    std::span<int const> const lengths = lengths_of_input<Input>(b);
    auto const values = input_of<Input>(b);
    if (lengths.empty()) {
      if (Input == 0)
        n = count_samples(values.size(), std::size_t(per_sample), end);
      else
        check_size({"input ", input_name<M, Input>()}, values.size(), std::size_t(n) * per_sample);
    } else if (in.is_axis) {
      take_lengths(lengths_part<M, Input>(), lengths, values.size(), per_sample, end,
                   copies_[Input].samples.begin());
      if (Input == 0) n = int(lengths.size());
    }
    if (batch_part const of = lengths_part<M, Input>();
        !lengths.empty() && (!in.is_axis || lengths.size() != std::size_t(n)))
      throw_error<data_error>({"lengths", of.what, of.quote(), of.name, of.quote(), ": expected ",
                               in.is_axis ? n : 0, " samples, got ", lengths.size()});
    if constexpr (in.is_ids) host_checks::ids("token", values, -1, in.vocabulary);
    if constexpr (in.is_axis)
      if (lengths.empty()) {
        int const* const labels = with_labels ? labels_by_row_of<Input>(b) : nullptr;
        for (long s = 0; s < n; ++s)
          copies_[Input].samples[s] = {
              length_of(values.data() + s * per_sample,
                        labels == nullptr ? nullptr : labels + s * per_sample, per_sample),
              s * per_sample};
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
  /// Copies the rows of an input in a micro-batch, and of the labels if these have as many, and
  /// lists their segments. A sample without a row has a block of padding, so that no segment is
  /// empty.
  ///
  /// throws: data_error for more rows than are planned
  void fill(int input, batch_part of_input, int mb, int const* ids,
            [[maybe_unused]] label_type const* labels) {
    input_copy& copy = copies_[input];
    segment_list& list = lists_[mb * inputs + input];
    int const capacity = capacity_of(input);
    int* const first = copy.first.begin() + mb * (most + 1);
    int* const given = copy.given.begin() + mb * most;
    long* const place = copy.place.begin() + mb * most;
    int* const segment = copy.segment.begin() + long(mb) * capacity;
    int* const to = copy.ids.begin() + long(mb) * capacity;
    int row = 0;
    for (int s = 0; s < list.count; ++s) {
      sample_rows const of = copy.samples[list.first_sample + s];
      int const rows = row_room{capacity, most, block}.rows_of(of.length);
      if (row + rows > capacity)
        throw_error<data_error>({"micro_batches: the samples of micro-batch ", mb,
                                 " have more rows", of_input.what, of_input.quote(), of_input.name,
                                 of_input.quote(), " than ", capacity,
                                 ", MicroBatchSize times the context"});
      first[s] = row;
      given[s] = of.length;
      place[s] = of.place;
      copy_padded(ids + of.place, of.length, rows, to + row);
      for (int r = row; r < row + rows; ++r) segment[r] = s;
      if constexpr (loss_axis != 0)
        if (labels != nullptr && input == loss_input)
          copy_padded(labels + of.place, of.length, rows,
                      labels_.begin() + long(mb) * capacity + row);
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
  /// Enters the copy of an input in a job; of one that is no axis copies n samples first.
  template <int Input, class Batch>
  void enter([[maybe_unused]] Batch const& b, [[maybe_unused]] int n, bool with_labels, job& j) {
    constexpr input_record in = records[Input];
    if (in.of_loss && !with_labels) return;
    auto const copy = [this] {
      if constexpr (records[Input].is_ids)
        return copies_[Input].ids.begin();
      else
        return copies_[Input].numbers.begin();
    }();
    if constexpr (!in.is_axis) copy_samples(input_of<Input>(b).data(), n, capacity_of(Input), copy);
    j.batch.input[Input] = copy;
  }

  /// to[0, rows) = from[0, count), and -1 behind them.
  static void copy_padded(int const* from, int count, int rows, int* to) {
    std::memcpy(to, from, sizeof(int) * std::size_t(count));
    for (int r = count; r < rows; ++r) to[r] = -1;
  }
  /// Copies n samples, of which a micro-batch has `numbers` numbers, and zeros up to its end.
  template <class Number>
  static void copy_samples(Number const* from, long n, long numbers, Number* to) {
    long const end = n * (numbers / each), all = (end + numbers - 1) / numbers * numbers;
    if (end > 0) std::memcpy(to, from, sizeof(Number) * std::size_t(end));
    for (long i = end; i < all; ++i) to[i] = Number(0);
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
