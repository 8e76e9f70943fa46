// SPDX-License-Identifier: BSL-1.0
//
// Long orders from short ones. The difficult parts of an order are its beginning and its end;
// between them it may be periodic. So a good order of few micro-batches, which is cheap to search,
// becomes an order of many micro-batches when one of its periods is repeated.
#pragma once

#include <pipe/schedule/search/search_order.hpp>

namespace pp::detail {

/// The periods of an order. A period of `length` micro-batches is, on every rank, a range of
/// actions with every kind of every chunk `length` times. The ranges of all ranks begin at or near
/// the F of the same micro-batch in the rank's first chunk.
///
/// needs: order.fits(), with the micro-batches of each kind and chunk in order; `order` is not
///        changed while this exists
class order_periods {
 public:
  constexpr order_periods(search_order const& order, int chunks, int micro_batches)
      : order_(order), p_(order.ranks()), m_(micro_batches), kinds_(3 * chunks / p_),
        row_(kinds_ * m_), forward_(p_ * m_), done_(p_ * (row_ + 1) * kinds_), nearest_(p_ * row_),
        begin_(p_), next_(p_) {
    for (int rank = 0; rank < p_; ++rank) {
      int const first_chunk = chunk_on(order.where, p_, rank, 0);
      int* done = done_.item + rank * (row_ + 1) * kinds_;
      for (int i = 0; i < row_; ++i, done += kinds_) {
        action const a = order.at(rank, i);
        if (a.kind == action_kind::forward && a.chunk == first_chunk)
          forward_.item[rank * m_ + a.micro_batch] = i;
        for (int which = 0; which < kinds_; ++which) done[kinds_ + which] = done[which];
        ++done[kinds_ + a.chunk / p_ * 3 + static_cast<int>(a.kind)];
      }
    }
  }

  /// Selects periods of `length` micro-batches.
  ///
  /// cost: linear in the number of actions
  constexpr void set_length(int length) {
    length_ = length;
    has_begun_ = false;
    for (int rank = 0; rank < p_; ++rank) {
      int* const nearest = nearest_.item + rank * row_;
      int last = none;
      for (int i = 0; i < row_; ++i) {
        if (is_period(rank, i)) {
          for (int back = last == none ? 0 : (last + i) / 2 + 1; back < i; ++back)
            nearest[back] = i;
          last = i;
        }
        nearest[i] = last;
      }
    }
  }

  /// Whether a period begins at that micro-batch that is not merely a later part of the last one;
  /// if so, repeat() repeats this period.
  constexpr bool begin_at(int micro_batch) {
    bool is_new = !has_begun_;
    for (int rank = 0; rank < p_; ++rank) {
      int const at = forward_.item[rank * m_ + micro_batch],
                begin = nearest_.item[rank * row_ + at];
      if (begin == none || begin - at > kinds_ || at - begin > kinds_) return false;
      next_.item[rank] = begin;
    }
    for (int rank = 0; rank < p_; ++rank) {
      int const next = next_.item[rank], last = begin_.item[rank];
      is_new = is_new || !is_periodic(rank, next < last ? next : last, next < last ? last : next);
      begin_.item[rank] = next;
    }
    has_begun_ = true;
    return is_new;
  }

  /// Fills `longer` with the order in which the period occurs `times` times more.
  ///
  /// needs: begin_at; `longer` is of the same problem with `times * length` more micro-batches
  /// law:   the micro-batches of each kind and chunk are in order; if every micro-batch frees the
  ///        memory that it takes, no rank's peak grows. A deadlock is possible: longer.play() tells
  constexpr void repeat(int times, search_order& longer) const {
    int const many = longer.actions().micro_batches;
    int const* const kind_at = order_.actions().kind_at.item;
    longer.clear();
    for (int rank = 0; rank < p_; ++rank) {
      int const begin = begin_.item[rank], end = begin + kinds_ * length_;
      auto const copy = [&](int first, int last, int more) {
        for (int i = first; i < last; ++i) {
          int const x = order_.row(rank)[i];
          longer.push_number(rank, x + kind_at[x] * (many - m_) + more);
        }
      };
      copy(0, begin, 0);
      for (int time = 0; time < times; ++time) copy(begin, end, time * length_);
      copy(begin, row_, times * length_);
    }
  }

 private:
  static constexpr int none = -1;

  constexpr bool is_period(int rank, int begin) const {
    int const all = kinds_ * length_;
    if (begin + all > row_) return false;
    int const* const done = done_.item + (rank * (row_ + 1) + begin) * kinds_;
    for (int which = 0; which < kinds_; ++which)
      if (done[all * kinds_ + which] - done[which] != length_) return false;
    return true;
  }

  /// Whether each action of a range occurs again one period later.
  constexpr bool is_periodic(int rank, int first, int last) const {
    int const* const row = order_.row(rank);
    for (int i = first; i < last; ++i)
      if (row[i + kinds_ * length_] != row[i] + length_) return false;
    return true;
  }

  search_order const& order_;
  int p_, m_, kinds_, row_;  // row_: actions of a rank; kinds_: their kinds, three per chunk
  int length_ = 0;
  scratch<int> forward_;  // by rank and micro-batch: the position of F in the rank's first chunk
  scratch<int> done_;     // by rank, position and kind: the number of such actions before it
  scratch<int> nearest_;  // by rank and position: the nearest begin of a period, or none
  scratch<int> begin_;    // by rank: the begin of the period to repeat
  scratch<int> next_;     // by rank: the begin of the period at which begin_at() looks
  bool has_begun_ = false;
};

}  // namespace pp::detail
