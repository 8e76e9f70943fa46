// SPDX-License-Identifier: BSL-1.0
//
// Drawings of a trainer: its plan, known at compile time, and its last run, measured.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <pipe/base/type_name.hpp>
#include <pipe/report/drawing.hpp>
#include <pipe/report/kernels.hpp>
#include <pipe/report/layer_list.hpp>
#include <pipe/train/compiled/compiled_pipeline.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/schedule/dynamic_table.hpp>
#include <pipe/train/options.hpp>
#include <pipe/train/plan.hpp>

namespace pp {

/// The planned training step. Times are those that the partition used: estimates in FLOPs at full
/// speed, or nanoseconds with ByProfile.
template <class Trainer>
drawing drawing_of_plan(
    std::string title = std::string(detail::type_name<typename Trainer::model>()) + ", predicted") {
  using compiled = typename Trainer::compiled;
  using partition = typename compiled::template option<option_family::partition>;
  constexpr bool profiled = requires { typename partition::profile; };
  return drawing_of(compiled::times(), compiled::table(), compiled::timeline(),
                    {std::move(title), profiled ? "ns" : "FLOP", "B"});
}

/// The measured last run of a trainer. On the critical path an action follows its predecessor on
/// the rank or the producer of its operand, whichever ended later.
template <class Trainer>
drawing drawing_of_last_run(
    Trainer const& trainer,
    std::string title = std::string(detail::type_name<typename Trainer::model>()) + ", measured") {
  using compiled = typename Trainer::compiled;
  auto question = compiled::times();
  // Planned transfer times do not apply: measured times include the transfers.
  question.hop = question.bandwidth = 0;
  auto table = dynamic_table(compiled::ranks, compiled::schedule::where, false);
  auto when = timeline<dynamic_rows<time_span>>{dynamic_rows<time_span>(compiled::ranks), true, 0};
  for (int rank = 0; rank < compiled::ranks; ++rank)
    for (executed_action const& e : trainer.executed(rank)) {
      table.push(rank, e.what);
      table.trains = table.trains || e.what.kind != action_kind::forward;
      when.spans.push(rank, {e.start, e.end});
      when.makespan = std::max(when.makespan, e.end);
    }
  return drawing_of(question, table, when, {std::move(title), "ns", "B"});
}

/// Watcher that records the kernels of a run and adds them to a drawing of it:
///
///     pp::seen_kernels<Trainer> kernels;
///     trainer.watch(batch, kernels.watcher());
///     pp::drawing measured = pp::drawing_of_last_run(trainer);
///     kernels.add_to(measured);
///
/// Only durations of kernels are known, so within an action they are drawn consecutively from its
/// start.
template <class Trainer>
class seen_kernels {
 public:
  /// The function for Pipeline::watch. Ranks may call it concurrently.
  auto watcher() {
    return [this](launch_seen const& seen) {
      ranks_[std::size_t(seen.rank)].push_back(
          {seen.chunk, seen.micro_batch, seen.which, seen.what->group, seen.nanoseconds});
    };
  }

  /// Adds the kernels to a drawing.
  ///
  /// needs: the drawing is of the watched run
  void add_to(drawing& d) const {
    auto const leaf = detail::leaf_names(typename Trainer::model::leaves{});
    for (std::size_t rank = 0; rank < d.ranks.size(); ++rank) {
      detail::drawn_rank& row = d.ranks[rank];
      auto next = ranks_[rank].begin();
      for (detail::drawn_action const& a : row.actions)
        for (long time = a.start; next != ranks_[rank].end() && belongs(*next, a.what); ++next) {
          // A detail must be inside its action: see drawn_rank.
          long const end = std::min(time + next->nanoseconds, a.end);
          row.details.push_back(
              {detail::group_text(Trainer::compiled::group_at(next->group), leaf), time, end});
          time = end;
        }
    }
  }

 private:
  /// A launch that the watcher has seen.
  struct launched {
    int chunk = 0, micro_batch = 0;
    detail::program which = detail::program::forward;
    int group = 0;
    long nanoseconds = 0;
  };
  /// Whether a launch is part of action a. A program that is not F, B or W alone is B and W in one.
  static bool belongs(launched const& k, action const& a) {
    using enum action_kind;
    bool const same_program =
        k.which == detail::program::forward           ? a.kind == forward
        : k.which == detail::program::backward_input  ? a.kind == backward_input
        : k.which == detail::program::backward_weight ? a.kind == backward_weight
                                                      : a.kind == backward;
    return same_program && k.chunk == a.chunk && k.micro_batch == a.micro_batch;
  }

  // A list for each rank, so that ranks can add to theirs concurrently.
  std::vector<std::vector<launched>> ranks_ =
      std::vector<std::vector<launched>>(Trainer::compiled::ranks);
};

}  // namespace pp
