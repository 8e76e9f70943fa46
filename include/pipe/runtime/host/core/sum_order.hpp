// SPDX-License-Identifier: BSL-1.0
//
// The order in which ranks that hold one chunk add to its gradients and to the sums of its buffers:
// the order of micro-batches, so that the bits are those of a single rank. The order is kept kernel
// by kernel: a kernel waits until the same kernel has added for the micro-batch before. So two
// backward passes run one kernel apart, rather than one after the other.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/core/activity.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The order of one program of a chunk, for one micro-batch. It costs nothing for a chunk with one
/// holder, or in a run that does not train.
///
/// needs: one launch of a program adds to each element
/// law:   waits have no cycle: the micro-batch before is in a program, which waits only for still
///        earlier micro-batches, or is to come on its rank, which reaches it as check_progress has
///        proved
template <transport Transport>
class sum_order {
 public:
  /// shift: added to a micro-batch's number in its mini-batch for its number in milestones
  sum_order(pipeline_description const& d, job const& j, Transport& transport,
            failure_flag const& failed, action const& a, program_set const& set, program p,
            int shift)
      : d_(d), transport_(transport), failed_(failed), chunk_(d.chunk[a.chunk]), of_(a),
        view_(set.programs[int(p)]), shift_(shift) {
    is_on_ = !Transport::copies && chunk_.holders > 1 && j.adds_gradients() && adds_up(p);
    if (!is_on_) return;
    // Launch i for a micro-batch has number micro_batch * numbers + i; the last number is for the
    // end of the program.
    int const kept = chunk_.keeping.programs[int(p)].count,
              dropped = chunk_.dropping.programs[int(p)].count;
    numbers_ = 1 + (kept > dropped ? kept : dropped);
    which_ = p == program::forward ? milestone::forward_sum : milestone::gradient_sum;
    before_is_alike_ = a.micro_batch > 0 && &chunk_.set_for(a.micro_batch - 1) == &set;
  }

  waited begin() const { return waited::done; }
  /// Before a launch that adds: waits for the micro-batch before. Adds the time of the wait to
  /// `sum`, in nanoseconds.
  template <class Now>
  waited await([[maybe_unused]] int launch, [[maybe_unused]] activity& doing,
               [[maybe_unused]] long& sum, [[maybe_unused]] Now const& now) const {
    waited outcome = waited::done;
    if constexpr (!Transport::copies)
      if (is_on_ && of_.micro_batch > 0 && adds(launch)) {
        int const before = of_.micro_batch - 1;
        long const start = now();
        doing.change(activity::kind::waits, of_.chunk, start);
        outcome =
            transport_.wait(d_.holder_of(of_.chunk, before), which_,
                            number(before, before_is_alike_ ? launch : numbers_ - 1), failed_);
        sum += now() - start;
      }
    return outcome;
  }
  /// Publishes that a launch is done.
  void publish(int launch) const {
    if (is_on_ && adds(launch)) publish_number(launch);
  }
  /// Publishes that the program is done.
  void end() const {
    if (is_on_) publish_number(numbers_ - 1);
  }

 private:
  /// Whether a launch writes to sums over micro-batches.
  bool adds(int launch) const { return adds_to_sums(view_, launch); }
  /// The number of a launch, modulo 2^32 as a transport's counters are.
  int number(int micro_batch, int launch) const {
    return int(unsigned(micro_batch + shift_) * unsigned(numbers_) + unsigned(launch));
  }
  void publish_number([[maybe_unused]] int launch) const {
    if constexpr (!Transport::copies)
      transport_.publish(d_.holder_of(of_.chunk, of_.micro_batch), which_,
                         number(of_.micro_batch, launch));
  }

  pipeline_description const& d_;
  Transport& transport_;
  failure_flag const& failed_;
  chunk_description const& chunk_;
  action of_;
  program_view const& view_;
  int shift_;
  bool is_on_ = false;
  bool before_is_alike_ = false;  // the micro-batch before runs the same launches
  int numbers_ = 0;               // for each micro-batch: its launches, and its end
  milestone which_ = milestone::gradient_sum;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
