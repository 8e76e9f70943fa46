// SPDX-License-Identifier: BSL-1.0
//
// The order of each rank's actions where steps overlap: the order of one run for each accumulation
// of a step, or the period of a family without a flush. Such a period has actions of later steps
// among those of a step.
#pragma once

#include <pipe/base/view.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/schedule/action.hpp>

namespace pp::detail {

/// The order of actions of every rank in a period.
class flow_order {
 public:
  /// accumulations: runs of the schedule in a step
  explicit flow_order(pipeline_description const& d, int accumulations = 1)
      : d_(d), accumulations_(accumulations) {}

  /// Whether updates are not taken back: see step_overlap.
  bool is_free() const { return d_.rank[0].flow.items != nullptr; }
  int accumulations() const { return accumulations_; }
  /// The actions of rank r in the part of a period that ends with the last action of an
  /// accumulation.
  view<action> actions_of(int r, int accumulation = 0) const {
    rank_description const& plan = d_.rank[r];
    int const count = plan.flow.count / accumulations();
    return is_free() ? plan.flow.part({accumulation * count, (accumulation + 1) * count})
                     : plan.training;
  }
  /// An accumulation among all steps.
  struct place {
    long step;
    int accumulation;
  };
  /// The step and the accumulation of an action of period n that is in the part of `accumulation`.
  place place_of(action const& a, long n, int accumulation) const {
    int const all = a.micro_batch / d_.micro_batches + (is_free() ? 0 : accumulation);
    return {n + all / accumulations(), all % accumulations()};
  }
  /// The most steps by which an action of rank r is ahead of its period.
  int steps_ahead(int r) const {
    long most = 0;
    for (int accumulation = 0; accumulation < accumulations(); ++accumulation)
      for (action const& a : actions_of(r, accumulation))
        if (long const n = place_of(a, 0, accumulation).step; n > most) most = n;
    return int(most);
  }
  int most_steps_ahead() const {
    int most = 0;
    for (int r = 0; r < d_.ranks; ++r)
      if (int const n = steps_ahead(r); n > most) most = n;
    return most;
  }
  /// The rank that knows the losses: the rank of the last stage.
  int last_rank() const { return d_.chunk[d_.chunks - 1].rank; }
  /// use(number) for the chunks of rank r.
  template <class Use>
  void for_chunks_of(int r, Use use) const {
    for (int c = 0; c < d_.chunks; ++c)
      if (d_.chunk[c].rank == r) use(c);
  }
  /// use(rank) for each rank that has a later place of a parameter whose first place is on rank r:
  /// the gradient at the first place is added up over all places. for_first_places: use(rank) for
  /// each rank that has the first place of a parameter with a later place on rank r, whose values
  /// rank r copies.
  template <class Use>
  void for_later_places(int r, Use const& use) const {
    for (tie const& t : d_.ties)
      if (d_.chunk[t.owner_chunk].rank == r) use(d_.chunk[t.chunk].rank);
  }
  template <class Use>
  void for_first_places(int r, Use const& use) const {
    for (tie const& t : d_.ties)
      if (d_.chunk[t.chunk].rank == r) use(d_.chunk[t.owner_chunk].rank);
  }
  /// The version that an action of rank r in period n reads or, if the rank predicts weights, the
  /// newest version. newest: of the rank. oldest: slots of versions before this one have copies of
  /// it
  long version_of(int r, action const& a, long n, long newest, long oldest) const {
    long const planned = d_.rank[r].predicts ? newest : n + a.version;
    long const kept = newest + 1 - d_.chunk[a.chunk].versions.slots;
    long const least = kept > oldest ? kept : oldest;
    return planned > least ? planned : least;
  }
  /// The first chunk that rank r updates; -1 if there is none.
  int first_chunk_of(int r) const {
    int c = 0;
    while (c < d_.chunks && d_.chunk[c].rank != r) ++c;
    return c < d_.chunks ? c : -1;
  }

 private:
  pipeline_description const& d_;
  int accumulations_;
};

}  // namespace pp::detail
