// SPDX-License-Identifier: BSL-1.0
//
// Long orders from short ones. What is hard in an order is how it begins and ends; between, it may
// do the same again and again. So an order of few micro-batches, which can be searched well, is one
// of many when a period of it is repeated.
#pragma once

#include <pipe/schedule/search_order.hpp>

namespace pp::detail {

/// The periods of an order. One of `length` micro-batches is, on every rank, a stretch of actions
/// with every kind of every chunk `length` times; they begin where the F of the same micro-batch
/// stands in the first chunk of each rank, or a little off.
///
/// needs: order.fits(), with the micro-batches of a kind and chunk in order, and stays as it is
class order_periods {
 public:
  constexpr order_periods(search_order const& order, int chunks, int micro_batches)
      : order_(order), p_(order.ranks()), m_(micro_batches), kinds_(3 * chunks / p_),
        row_(kinds_ * m_), forward_(p_ * m_), done_(p_ * (row_ + 1) * kinds_), nearest_(p_ * row_),
        begin_(p_) {
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

  /// From now on periods of `length` micro-batches are meant.
  ///
  /// cost: linear in the number of actions
  constexpr void set_length(int length) {
    length_ = length;
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

  /// Whether there is a period that begins at that micro-batch. It is the one to repeat.
  constexpr bool begin_at(int micro_batch) {
    for (int rank = 0; rank < p_; ++rank) {
      int const at = forward_.item[rank * m_ + micro_batch],
                begin = nearest_.item[rank * row_ + at];
      if (begin == none || begin - at > kinds_ || at - begin > kinds_) return false;
      begin_.item[rank] = begin;
    }
    return true;
  }

  /// Fills `longer` with the order in which the period comes `times` times more.
  ///
  /// needs: begin_at; `longer` is of the same problem with `times * length` more micro-batches
  /// law:   of a kind and chunk, the micro-batches are in order; if what a micro-batch adds to
  ///        memory it gives back, no rank's peak grows; whether ranks wait for each other for ever
  ///        is for `longer.play()` to say
  constexpr void repeat(int times, search_order& longer) const {
    longer.clear();
    for (int rank = 0; rank < p_; ++rank) {
      int const begin = begin_.item[rank], end = begin + kinds_ * length_;
      auto const copy = [&](int first, int last, int more) {
        for (int i = first; i < last; ++i) {
          action a = order_.at(rank, i);
          a.micro_batch += more;
          longer.push(rank, a);
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

  search_order const& order_;
  int p_, m_, kinds_, row_;  // kinds of actions of a rank, and its actions in all
  int length_ = 0;
  scratch<int> forward_;  // by rank and micro-batch: where the F of the rank's first chunk stands
  scratch<int> done_;     // by rank, position and kind: how many come before
  scratch<int> nearest_;  // by rank and position: where a period begins that is near, or none
  scratch<int> begin_;    // by rank: of the period to repeat
};

}  // namespace pp::detail
