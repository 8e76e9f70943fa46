// SPDX-License-Identifier: BSL-1.0
//
// Mini-batches that a thread makes while the trainer works on earlier ones: reading, decoding and
// augmenting delay no step unless they take longer than a step. Finished mini-batches wait in a
// ring of buffers, copied, as a range may use one buffer for all of its mini-batches. One thread
// makes all mini-batches: with several threads, the order, or what a function keeps from call to
// call, would depend on the clock.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/base/signals_blocked.hpp>
#include <pipe/base/thread.hpp>
#include <pipe/data/data_set.hpp>
#include <pipe/data/owned_batch.hpp>

namespace pp {

namespace detail {

/// The data of batches_ahead.
struct ahead_settings {
  /// The maximum number of waiting mini-batches, beside the one in use; at least 1.
  int depth = 2;
  /// Samples of a full mini-batch that a function fills; 0: Trainer::samples. For replicas:
  /// trainer.batch_samples().
  int samples = 0;
  /// Number of samples of all epochs before the first mini-batch that a function fills.
  long sample_position = 0;
};

/// A range of mini-batches with a sample position, such as `batches`.
template <class Range, class Trainer>
concept range_of_batches = requires(Range& r, typename Trainer::batch& b) {
  { r.begin() == r.end() } -> std::convertible_to<bool>;
  b = *r.begin();
  { r.sample_position() } -> std::convertible_to<long>;
};
/// A function that fills a mini-batch in memory of its own.
template <class Fill, class Trainer>
concept fills_batches =
    requires(Fill& fill, owned_batch<Trainer>& b, long place) { fill(b, place); };

}  // namespace detail

/// Mini-batches in the order in which a thread makes them ahead of the trainer, each in a buffer of
/// its own. They are made in one of two ways:
///
/// * by a function: `fill(batch, place)` fills an owned_batch that has room for a full mini-batch,
///   or for what the function resizes it to; `place` is the number of samples of all epochs before
///   the mini-batch. If `fill` returns false there is no mini-batch, and no more follow; a function
///   that returns nothing goes on for ever.
/// * of a range, such as `batches`: copies of its mini-batches, changed by `change(batch, place)`
///   if that is given.
///
///     for (auto const& batch : batches_ahead<Trainer>(epoch, augmented)) trainer.step(batch);
///
/// law:   the mini-batches are those that the function or the range makes in a single thread: the
///        same order and bits, for every depth
/// law:   an exception in the thread is thrown where its mini-batch would have come, and nothing
///        comes after it
/// law:   the destructor ends the thread: it waits for the mini-batch that is being made, and for
///        no other
/// needs: until the destructor has returned the range exists, and only the thread uses the range
///        and what the functions change
template <class Trainer>
class batches_ahead {
 public:
  using batch = typename Trainer::batch;
  using settings = detail::ahead_settings;

  /// Begins to make mini-batches by a function.
  ///
  /// throws: data_error for a setting out of range; std::system_error if the system has no thread
  ///         to give
  template <detail::fills_batches<Trainer> Fill>
  explicit batches_ahead(Fill fill, settings const& s = settings{})
      : batches_ahead(
            std::make_unique<filled<Fill>>(
                std::move(fill), std::size_t(s.samples > 0 ? s.samples : Trainer::samples)),
            s, s.sample_position) {}
  /// Begins to copy the mini-batches of a range, of which only the depth is a setting.
  ///
  /// throws: as the constructor from a function
  template <detail::range_of_batches<Trainer> Range>
  explicit batches_ahead(Range& range, settings const& s = settings{})
      : batches_ahead(range, [](owned_batch<Trainer>&, long) {}, s) {}
  /// Begins to copy and change the mini-batches of a range.
  ///
  /// throws: as the constructor from a function
  template <detail::range_of_batches<Trainer> Range, detail::fills_batches<Trainer> Change>
  batches_ahead(Range& range, Change change, settings const& s = settings{})
      : batches_ahead(std::make_unique<ranged<Range, Change>>(range, std::move(change)), s,
                      long(range.sample_position())) {
    if (s.samples != 0 || s.sample_position != 0)
      detail::throw_error<data_error>({"batches_ahead: samples and sample_position are those of ",
                                       "the range, and can only be set for a function"});
  }
  batches_ahead(batches_ahead const&) = delete;
  batches_ahead& operator=(batches_ahead const&) = delete;
  ~batches_ahead() {
    {
      std::lock_guard const lock(mutex_);
      stops_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  /// Number of samples that the loop has reached, over all epochs: the place to resume at, as that
  /// of `batches`. How far the thread is ahead depends on the clock, so each buffer carries the
  /// position behind its mini-batch.
  long sample_position() const { return position_; }

  /// What end() returns.
  struct end_of_range {};
  /// An input iterator, of which there is one at a time.
  class iterator {
   public:
    using value_type = batch;
    using difference_type = std::ptrdiff_t;
    /// The current mini-batch, valid until the next increment.
    batch const& operator*() const { return of_->current_; }
    /// Waits for the next mini-batch. throws: the exception of its making
    iterator& operator++() {
      of_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(end_of_range) const { return of_->ended_; }

   private:
    friend batches_ahead;
    explicit iterator(batches_ahead* of) : of_(of) {}
    batches_ahead* of_;
  };
  /// Waits for the first mini-batch that was not reached yet: a loop that was left goes on there.
  ///
  /// throws: the exception of the mini-batch's making
  iterator begin() {
    advance();
    return iterator(this);
  }
  end_of_range end() const { return {}; }

 private:
  /// A way of making mini-batches, which only the thread uses.
  struct source {
    virtual ~source() = default;
    /// Makes the next mini-batch, at `place`, and moves `place` behind it. Returns whether there is
    /// one.
    virtual bool make(owned_batch<Trainer>& to, long& place) = 0;
  };
  template <class Fill>
  struct filled final : source {
    filled(Fill&& by, std::size_t of) : fill(std::move(by)), samples(of) {}
    bool make(owned_batch<Trainer>& to, long& place) override {
      to.resize(samples);
      if constexpr (std::is_void_v<std::invoke_result_t<Fill&, owned_batch<Trainer>&, long>>)
        fill(to, std::as_const(place));
      else if (!fill(to, std::as_const(place)))
        return false;
      batch made = to.view();
      made.micro_batches = {};  // a function may compose the mini-batch, too
      place += long(data_set::count<Trainer>(made, true));
      return true;
    }
    Fill fill;
    std::size_t samples;
  };
  template <class Range, class Change>
  struct ranged final : source {
    ranged(Range& of, Change&& by) : range(of), change(std::move(by)) {}
    bool make(owned_batch<Trainer>& to, long& place) override {
      if (at)
        ++*at;
      else
        at.emplace(range.begin());
      if (*at == range.end()) return false;
      to.assign(**at);
      change(to, std::as_const(place));
      place = range.sample_position();
      return true;
    }
    Range& range;
    Change change;
    std::optional<decltype(std::declval<Range&>().begin())> at;
  };

  /// A mini-batch, or with `ends` the end of the range.
  struct slot {
    owned_batch<Trainer> of;
    long position = 0;  // behind the mini-batch
    bool ends = false;
    std::exception_ptr failure;
  };

  batches_ahead(std::unique_ptr<source> of, settings const& s, long begin)
      : source_(std::move(of)), position_(begin), place_(begin) {
    require("depth", s.depth, 1);
    require("samples", s.samples, 0);
    require("sample_position", s.sample_position, 0);
    ring_ = std::vector<slot>(std::size_t(s.depth) + 1);
    detail::signals_blocked const inherited;
    thread_ = detail::thread(&run, this, 0);
  }

  /// throws: data_error for a setting that is too small
  static void require(char const* setting, long value, long least) {
    if (value < least)
      detail::throw_error<data_error>(
          {"batches_ahead: ", setting, ": expected ", least, " or more, got ", value});
  }
  slot& slot_of(std::size_t i) { return ring_[i % ring_.size()]; }

  /// The thread: makes mini-batches while there is room.
  static void run(void* self, int) {
    auto& all = *static_cast<batches_ahead*>(self);
    while (all.make()) {
    }
  }
  /// Makes the next mini-batch when there is room for it. Returns whether another mini-batch
  /// follows. The thread no longer holds an exception that it has handed over.
  bool make() {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stops_ || made_ - released_ < ring_.size(); });
      if (stops_) return false;
    }
    slot& to = slot_of(made_);  // no other thread changes made_
    to.ends = true;
    try {
      to.ends = !source_->make(to.of, place_);
    } catch (...) {
      to.failure = std::current_exception();
    }
    to.position = place_;
    bool const goes_on = !to.ends;
    {
      std::lock_guard const lock(mutex_);
      ++made_;
    }
    changed_.notify_one();
    return goes_on;
  }
  /// Gives the current buffer back and waits for the next mini-batch.
  void advance() {
    if (ended_) return;
    {
      std::lock_guard const lock(mutex_);
      released_ = reached_;
    }
    changed_.notify_one();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return made_ > reached_; });
    }
    slot& next = slot_of(reached_);
    ended_ = next.ends;
    if (next.failure) std::rethrow_exception(std::exchange(next.failure, nullptr));
    if (ended_) return;
    ++reached_;
    position_ = next.position;
    current_ = next.of.view();
  }

  std::unique_ptr<source> const source_;
  std::vector<slot> ring_;
  // Of the consumer: the number of mini-batches that were reached, and the last of them.
  std::size_t reached_ = 0;
  long position_;
  bool ended_ = false;
  batch current_;
  // Of the thread: the place of the next mini-batch.
  long place_;
  // Of both: the numbers of mini-batches that were made, and of those whose buffers are free again.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t made_ = 0, released_ = 0;
  bool stops_ = false;
  detail::thread thread_;
};

}  // namespace pp
