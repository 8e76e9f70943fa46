// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches of a data set, in order or shuffled. An epoch's order is a function of the seed and
// the epoch's number, so interrupted training resumes exactly: at the next mini-batch or, with
// mini-batches of another size, at the next sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <pipe/data/data_set.hpp>
#include <pipe/data/length_order.hpp>
#include <pipe/data/shuffled_order.hpp>
#include <pipe/train/parts/sample_lengths.hpp>

namespace pp {

namespace detail {

/// Order and range of an epoch's mini-batches.
struct batch_settings {
  bool shuffle = false;    ///< random order, different in each epoch
  std::uint64_t seed = 0;  ///< of the random orders
  long epoch = 0;          ///< counted from 0
  long first = 0;          ///< mini-batch to begin at, counted from 0
  bool drop_last = false;  ///< omits the last mini-batch if it is not full
  /// Samples of a full mini-batch; 0: Trainer::samples. For replicas: trainer.batch_samples(). By
  /// tokens and packed a mini-batch has the micro-batches of as many samples of the context.
  int samples = 0;
  long position = 0;  ///< instead of epoch and first: number of mini-batches before, in all epochs
  /// Instead of these: number of samples before, in all epochs, whatever the sizes of mini-batches.
  long sample_position = 0;
  /// The samples of a mini-batch have like lengths: of every 64 mini-batches the samples are sorted
  /// by length, of several inputs of token ids by the sum. With `shuffle` the mini-batches are in
  /// random order. The shortest micro-batches of an accumulation are at both ends.
  bool by_length = false;
  /// Each micro-batch has as many samples as there is room for their rows, and a mini-batch as many
  /// as fill its micro-batches, in the same order: see Lengths.
  bool by_tokens = false;
  /// Micro-batches are packed by first fit decreasing: from the longest sample to the shortest,
  /// each goes into the first one with room for its rows; of samples of equal length in the epoch's
  /// order. With `shuffle` the micro-batches are in random order.
  bool packed = false;
};

}  // namespace detail

/// The mini-batches of one epoch, with `samples` samples each; the last may be smaller. A data set
/// is a batch of any number of samples, padded or with lengths, which must outlive this object. In
/// order, mini-batches are views of the data set; shuffled, each is copied into a buffer when the
/// loop reaches it.
///
///     for (auto const& batch : batches<Trainer>({inputs, labels}, {.shuffle = true}))
///       trainer.step(batch);
///
/// law: every sample is in exactly one mini-batch, except those that drop_last omits
/// law: mini-batch i does not depend on `first`
/// law: an epoch that begins at the sample position at which another epoch was left has, together
///      with that epoch, every sample once, whatever the sizes of mini-batches; by length, by
///      tokens and packed with the same ones
template <class Trainer>
class batches {
 public:
  using batch = typename Trainer::batch;

  /// Throws data_error for lists of different numbers of samples, an epoch without mini-batches, or
  /// a setting out of range.
  explicit batches(batch const& data, detail::batch_settings const& s = detail::batch_settings{})
      : data_(data), places_(data_set::places_in<Trainer>(data, true)), count_(places_.samples),
        first_(s.first), whole_(std::size_t(s.samples > 0 ? s.samples : Trainer::samples)) {
    if (s.samples < 0)
      detail::throw_error<data_error>({"batches: samples: expected 0 or more, got ", s.samples});
    size_ = long(s.drop_last ? count_ / whole_ : (count_ + whole_ - 1) / whole_);
    if (size_ == 0)
      detail::throw_error<data_error>({"batches: expected a data set of at least ",
                                       s.drop_last ? whole_ : 1, " samples for a ",
                                       s.drop_last ? "whole " : "", "mini-batch, got ", count_});
    if (s.position < 0 || (s.position > 0 && (s.epoch != 0 || s.first != 0)))
      detail::throw_error<data_error>(
          {"batches: position: expected 0 or more, without epoch and first, got ", s.position});
    if (s.sample_position < 0 ||
        (s.sample_position > 0 && (s.epoch != 0 || s.first != 0 || s.position != 0)))
      detail::throw_error<data_error>(
          {"batches: sample_position: expected 0 or more, without epoch, first and position, got ",
           s.sample_position});
    if (s.first < 0 || s.first > size_)
      detail::throw_error<data_error>(
          {"batches: first: mini-batch ", s.first, " is not in [0, ", size_, "]"});
    if (s.epoch < 0)
      detail::throw_error<data_error>({"batches: epoch: expected 0 or more, got ", s.epoch});
    epoch_ = s.epoch + s.position / size_;
    first_ += s.position % size_;
    bool const is_composed = s.by_length || s.by_tokens || s.packed;
    std::size_t const before = std::size_t(s.sample_position);
    if (is_composed)
      epoch_ += long(before / count_);
    else if (before > 0)
      begin_at(before, s.drop_last);
    if (epoch_ > std::numeric_limits<long>::max() / long(count_) - 2)
      detail::throw_error<data_error>({"batches: epoch ", epoch_, " of ", count_,
                                       " samples is beyond all places that can be counted"});
    if (s.shuffle) order_ = detail::shuffled_order(count_, s.seed, std::uint64_t(epoch_));
    if (s.by_tokens || s.packed)
      fill_micro_batches(s);
    else if (s.by_length)
      order_by_length(s);
    if (is_composed && before > 0) begin_at_batch(before % count_);
    reached_ = first_;
  }
  batches(batches const&) = delete;
  batches& operator=(batches const&) = delete;

  /// Number of mini-batches in an epoch, including those before `first`; in an epoch that begins at
  /// a sample, as if mini-batches of the same size had gone before.
  long size() const { return size_; }
  /// The epoch's number, counted from 0.
  long epoch() const { return epoch_; }
  /// Number of mini-batches that were reached, over all epochs, including those before `first`. In
  /// a loop's body, after the step, this is the place to resume at.
  ///
  /// throws: data_error if mini-batches of another size went before, as sample_position says
  long position() const {
    if (!filled_.counts.empty())
      detail::throw_error<data_error>(
          {"batches: position() counts mini-batches of one size, and those by tokens and packed ",
           "have several: use sample_position()"});
    if (shift_ > 0)
      detail::throw_error<data_error>(
          {"batches: position() counts mini-batches of one size, and this epoch begins within one, "
           "at sample ",
           shift_ + std::size_t(first_) * whole_, ": use sample_position()"});
    return epoch_ * size_ + reached_;
  }
  /// Number of samples that were reached, over all epochs, with those that drop_last omits: the
  /// place to resume at, also with mini-batches of another size, such as those of another number of
  /// replicas.
  long sample_position() const {
    bool const ends = reached_ == size_;
    return ends ? (epoch_ + 1) * long(count_) : epoch_ * long(count_) + long(first_of(reached_));
  }

  /// What end() returns.
  struct end_of_range {};
  /// An input iterator. The mini-batch is made when the iterator arrives at it, so incrementing an
  /// iterator changes what another iterator of the same object reads.
  class iterator {
   public:
    using value_type = batch;
    using difference_type = std::ptrdiff_t;
    /// The current mini-batch, valid until the next increment.
    batch const& operator*() const { return of_->current_; }
    iterator& operator++() {
      of_->make(++index_);
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(end_of_range) const { return index_ >= of_->size_; }

   private:
    friend batches;
    iterator(batches* of, long index) : of_(of), index_(index) { of_->make(index_); }
    batches* of_;
    long index_;
  };
  /// Restarts at mini-batch `first`. Iterators share this object's buffer: one at a time.
  iterator begin() { return {this, first_}; }
  end_of_range end() const { return {}; }

 private:
  using model = typename Trainer::model;

  /// Lists the samples, unless they are shuffled, for a composition to reorder.
  void number_samples() {
    for (std::size_t i = order_.size(); i < count_; ++i) order_.push_back(i);
  }
  /// Makes the order of an epoch by length.
  ///
  /// throws: data_error if no input is token ids
  void order_by_length(detail::batch_settings const& s) {
    int longest = 0;
    std::vector<int> const lengths = detail::sums_of_lengths(data_, count_, longest);
    if (longest == 0)
      detail::throw_error<data_error>(
          {"batches: by_length: expected an input of token ids, which say by -1 where a sample "
           "ends"});
    number_samples();
    // Samples that are left out are any of the epoch's, not its longest.
    if (s.drop_last) order_.resize(std::size_t(size_) * whole_);
    detail::epoch_shuffle const shuffle{s.seed, std::uint64_t(epoch_)};
    detail::order_by_length(
        order_, lengths, longest,
        {whole_, std::size_t(Trainer::compiled::samples), Trainer::compiled::micro_batches},
        s.shuffle ? &shuffle : nullptr);
  }
  /// Makes the mini-batches of an epoch by tokens, or of packed micro-batches.
  ///
  /// throws: data_error for a setting that has no meaning then, or without Lengths
  void fill_micro_batches(detail::batch_settings const& s) {
    using compiled = typename Trainer::compiled;
    char const* const setting = s.by_tokens ? "by_tokens" : "packed";
    if (s.by_length || (s.by_tokens && s.packed) || s.position > 0)
      detail::throw_error<data_error>(
          {"batches: ", setting,
           ": mini-batches have different numbers of samples, so position and another composition "
           "do not go with it: resume by sample_position"});
    std::size_t const each = std::size_t(compiled::samples), micro_batches = whole_ / each;
    if (whole_ % each != 0)
      detail::throw_error<data_error>({"batches: samples: expected a multiple of MicroBatchSize, ",
                                       each, ", with ", setting, ", got ", whole_});
    if constexpr (data_set::takes_lengths<Trainer> && detail::has_rows_alone<model>) {
      number_samples();
      std::vector<detail::measured_rows> inputs;  // by axis
      detail::for_each_input<model>([&](auto input) {
        constexpr detail::input_record in = detail::model_tables<model>::inputs[input()];
        constexpr int context = int(in.form.elements());
        if constexpr (detail::is_axis(in, input()))
          inputs.push_back({detail::lengths_of<input()>(data_, count_),
                            context,
                            {compiled::samples * context, detail::most_segments<compiled>(),
                             compiled::lengths::block}});
      });
      detail::epoch_shuffle const shuffle{s.seed, std::uint64_t(epoch_)};
      filled_ = {detail::fill_micro_batches(order_, inputs, s.packed, compiled::micro_batches,
                                            s.shuffle ? &shuffle : nullptr),
                 micro_batches};
    } else {
      detail::throw_error<data_error>({"batches: ", setting,
                                       ": expected a Pipeline with Lengths whose model has an "
                                       "output for each position"});
    }
    size_ = long(filled_.first_sample.size()) - 1;
    bool const is_last_full = filled_.counts_of(std::size_t(size_) - 1).size() == micro_batches;
    if (s.drop_last && !is_last_full) --size_;
    if (size_ == 0)
      detail::throw_error<data_error>(
          {"batches: ", setting, ": the samples do not fill the ", micro_batches,
           " micro-batches of a mini-batch, and drop_last leaves out what is not full"});
    if (s.first > size_)
      detail::throw_error<data_error>(
          {"batches: first: mini-batch ", s.first, " is not in [0, ", size_, "]"});
  }
  /// Begins at the mini-batch before which the epoch has `samples` samples.
  ///
  /// throws: data_error if there is none: the epoch is not the one that was left
  void begin_at_batch(std::size_t samples) {
    while (first_ < size_ && first_of(first_) < samples) ++first_;
    if (first_ == size_ || first_of(first_) != samples)
      detail::throw_error<data_error>(
          {"batches: sample_position: no mini-batch of epoch ", epoch_, " begins at sample ",
           samples, ": by_length, by_tokens and packed go on only with the data set, the settings ",
           "and the sizes of the run that was left"});
  }
  /// Begins after `samples` samples of all epochs; in the next epoch if no mini-batch is left.
  void begin_at(std::size_t samples, bool drop_last) {
    std::size_t const done = samples % count_;
    epoch_ = long(samples / count_);
    if (drop_last && count_ - done < whole_) return void(++epoch_);
    first_ = long(done / whole_);
    shift_ = done % whole_;
    size_ = first_ + long((count_ - done + (drop_last ? 0 : whole_ - 1)) / whole_);
  }
  /// Sets current_ to mini-batch `index`; does nothing at the end of the epoch.
  ///
  /// cost: a view in order; shuffled, a copy of all lists of the mini-batch
  void make(long index) {
    reached_ = index < size_ ? index + 1 : size_;
    if (index >= size_) return;
    std::size_t const first = first_of(index), n = first_of(index + 1) - first;
    current_ = order_.empty() ? data_set::slice<Trainer>(data_, places_, first, n)
                              : copied_.gather(data_, places_, std::span(order_).subspan(first, n));
    if (!filled_.counts.empty()) current_.micro_batches = filled_.counts_of(std::size_t(index));
  }
  /// The place in the order of a mini-batch's first sample; of the number after the last the end.
  std::size_t first_of(long index) const {
    if (!filled_.counts.empty()) return filled_.first_sample[std::size_t(index)];
    std::size_t const first = shift_ + std::size_t(index) * whole_;
    return first < count_ ? first : count_;
  }
  batch data_, current_;
  data_set::sample_places places_;
  std::size_t count_;
  long first_;
  std::size_t whole_;      // samples of a full mini-batch
  std::size_t shift_ = 0;  // samples before mini-batch 0, less than whole_
  long size_ = 0, epoch_ = 0, reached_ = 0;
  detail::filled_batches filled_;  // by tokens and packed; else empty
  // Samples in the order of a shuffled epoch; empty: in order.
  std::vector<std::size_t> order_;
  data_set::copied_samples<Trainer> copied_;
};

}  // namespace pp
