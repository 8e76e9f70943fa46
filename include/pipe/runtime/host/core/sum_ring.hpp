// SPDX-License-Identifier: BSL-1.0
//
// The ring of ranks that hold one chunk and do not share memory: each rank has a copy of the
// weights and the gradients, and the sums over micro-batches go from rank to rank. A kernel that
// adds to sums receives the sums of the micro-batch before, adds, and sends the results on. So the
// bits are those of a single rank, as with sum_order, and two backward passes run one kernel and
// one message apart.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/activity.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The sums of one program of a chunk, for one micro-batch. They cost nothing for a chunk with one
/// holder, or in a run that does not train. The same interface as sum_order.
///
/// needs: one launch of a program adds to each element
/// law:   waits have no cycle: an action waits only for actions of earlier micro-batches of its
///        chunk, behind which check_progress has ordered it
template <stream_transport Transport>
class sum_ring {
 public:
  sum_ring(pipeline_description const& d, job const& j, Transport& transport,
           failure_flag const& failed, action const& a, program_set const& set, program p)
      : d_(d), transport_(transport), failed_(failed), chunk_(d.chunk[a.chunk]),
        view_(set.programs[int(p)]), micro_batch_(a.micro_batch) {
    is_on_ = chunk_.has_copies() && j.what == job::kind::train && adds_up(p);
    int const next = micro_batch_ + 1;
    hands_on_ = is_on_ && next < d.micro_batches && samples_in(d, j, next) > 0;
  }

  /// Begins the program: expects the sums for all its launches. They come to the place of the sums
  /// of this holder's last micro-batch, so those must have been sent.
  waited begin() const {
    waited all = waited::done;
    int const last = micro_batch_ - chunk_.holders;
    for (int i = 0; i < view_.count && is_on_ && micro_batch_ > 0; ++i)
      for_each_sum(chunk_, view_, view_.launches[i], [&](parameter_place const& p) {
        if (last >= 0 && all == waited::done) all = transport_.sent(stream(p, last), last, failed_);
        if (all == waited::done) transport_.expect(stream(p, micro_batch_ - 1), micro_batch_ - 1);
      });
    return all;
  }
  /// Before a launch that adds: waits for the sums of the micro-batch before. Adds the time of the
  /// wait to `sum`, in nanoseconds.
  template <class Now>
  waited await(int launch, activity& doing, long& sum, Now const& now) const {
    waited all = waited::done;
    if (is_on_ && micro_batch_ > 0)
      for_each_sum(chunk_, view_, view_.launches[launch], [&](parameter_place const& p) {
        long const start = now();
        doing.change(activity::kind::waits, int(&chunk_ - d_.chunk), start);
        if (all == waited::done)
          all = transport_.receive(stream(p, micro_batch_ - 1), micro_batch_ - 1, failed_);
        sum += now() - start;
      });
    return all;
  }
  /// Sends the sums to which a launch has added.
  void publish(int launch) const {
    if (hands_on_)
      for_each_sum(chunk_, view_, view_.launches[launch], [&](parameter_place const& p) {
        transport_.send(stream(p, micro_batch_), micro_batch_, {});
      });
  }
  /// Nothing is left to do at the end of the program.
  void end() const {}

 private:
  int stream(parameter_place const& p, int micro_batch) const {
    return sum_stream(d_, chunk_, micro_batch, p);
  }

  pipeline_description const& d_;
  Transport& transport_;
  failure_flag const& failed_;
  chunk_description const& chunk_;
  program_view const& view_;
  int micro_batch_ = 0;
  bool is_on_ = false;
  bool hands_on_ = false;  // another micro-batch of this run adds to the sums
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
