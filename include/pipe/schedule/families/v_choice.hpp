// SPDX-License-Identifier: BSL-1.0
//
// The choice of the best of several orders on a V. Which order is the fastest depends on the times
// of F, B, W and hops, so a family is a few orders, its authors' among them: all are timed, and the
// best that fits into the family's memory is taken.
#pragma once

#include <type_traits>

#include <pipe/schedule/families/v_order.hpp>
#include <pipe/schedule/families/v_play.hpp>
#include <pipe/schedule/families/weave.hpp>
#include <pipe/schedule/floors.hpp>

namespace pp::detail {

/// How many orders a family on a V tries. one: the family's own, in one way; two: the family's own
/// with Ws in two ways; some: also its authors'; all: each of these orders in every way.
enum class v_effort : unsigned char { one, two, some, all };

/// The effort for a size. In a constant evaluation compilers limit the number of steps, of which a
/// search on a V takes what three families take.
constexpr v_effort v_effort_for(int ranks, int micro_batches) {
  long const size = long(ranks) * (micro_batches > ranks ? micro_batches : ranks);
  if (std::is_constant_evaluated())
    return size <= 32 ? v_effort::some : size <= 128 ? v_effort::two : v_effort::one;
  return size <= 1L << 15 ? v_effort::all : size <= 1L << 18 ? v_effort::some : v_effort::one;
}

/// The best of the orders that are offered: memory beyond room(rank) counts first, then the
/// stage-local span, then the makespan; of equal orders the first.
///
/// needs: placement::vee, two chunks per rank
template <pipeline_problem Problem, class Room>
class v_choice {
 public:
  constexpr v_choice(Problem const& problem, Room room)
      : problem_(problem), room_(room), floor_(floor_of(problem, placement::vee)),
        a_(problem.ranks, problem.micro_batches), b_(problem.ranks, problem.micro_batches),
        fixed_(problem.ranks, problem.micro_batches) {}

  /// An empty order, to be filled and offered.
  constexpr v_order& blank() {
    v_order& order = a_is_best_ ? b_ : a_;
    order.clear();
    return order;
  }
  /// Offers a copy of an order.
  constexpr void offer(v_order const& order) {
    v_order& mine = blank();
    for (int rank = 0; rank < problem_.ranks; ++rank)
      for (int i = 0; i < order.size(rank); ++i) mine.push(rank, order.at(rank, i));
    offer();
  }
  constexpr void offer() {
    v_score const found = score_of(problem_, a_is_best_ ? b_ : a_, room_);
    if (!(found < score_)) return;
    score_ = found, a_is_best_ = !a_is_best_;
  }
  /// Whether no order is better: it fits, and both of its times are at their floors.
  constexpr bool at_floor() const {
    return score_.excess <= 0 && score_.span <= floor_.stage_local_span &&
           score_.makespan <= floor_.makespan;
  }
  constexpr v_order const& best() const { return a_is_best_ ? a_ : b_; }
  constexpr v_score const& score() const { return score_; }

  /// Offers the Fs and Bs of `order` with Ws where they fit.
  constexpr void offer_woven(v_order const& order) {
    copy_fixed(order);
    for (gap_rule rule : {gap_rule::any, gap_rule::long_enough}) {
      if (at_floor()) return;
      weave(problem_, fixed_, blank(), room_, rule);
      offer();
    }
  }
  /// Offers the order that `order` gives when it is played at real times: in one way, or in all.
  constexpr void offer_played(v_order const& order, v_effort effort) {
    if (at_floor()) return;
    copy_fixed(order);
    auto play = v_play<Problem, Room>(problem_, room_);
    for (int delay : {v_play_rule::any_length, 1, 2, 0})
      for (bool weights_first : {false, true}) {
        if (play.fill(fixed_, {delay, weights_first}, blank())) offer();
        if (at_floor() || effort == v_effort::some) return;
      }
  }

  /// Appends the best order to `table`.
  template <action_table Table>
  constexpr void fill(Table& table) const {
    for (int rank = 0; rank < problem_.ranks; ++rank)
      for (int i = 0; i < best().size(rank); ++i) table.push(rank, best().at(rank, i));
  }

 private:
  constexpr void copy_fixed(v_order const& order) {
    fixed_.clear();
    for (int rank = 0; rank < problem_.ranks; ++rank)
      for (int i = 0; i < order.size(rank); ++i)
        if (action const a = order.at(rank, i); a.kind != action_kind::backward_weight)
          fixed_.push(rank, a);
  }

  Problem const& problem_;
  Room room_;
  flush_floor floor_;
  v_order a_, b_, fixed_;
  bool a_is_best_ = false;
  v_score score_{};
};

}  // namespace pp::detail
