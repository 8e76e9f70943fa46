// SPDX-License-Identifier: BSL-1.0
//
// The ring of ranks that hold one chunk and do not share memory: each has a copy of the weights and
// the gradients, and the sums over micro-batches go from one to the next. A kernel that adds to
// some receives those of the micro-batch before, adds, and sends them on. So the bits are those of
// a single rank, as with sum_order, and two backward passes run one kernel, and a message, apart.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/activity.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The sums of one program of a chunk for one micro-batch. Costs nothing for a chunk with one
/// holder, or in a run that does not train. The interface of sum_order.
///
/// needs: every element that is added to has one launch of a program that does so
/// law:   waits have no cycle: an action waits only for those of earlier micro-batches of its
///        chunk, after all of which check_progress has let it run
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

  /// Begins the program: makes ready for the sums of all of its launches. They come to where those
  /// of the holder's last micro-batch are, which are to be sent by now.
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
  /// Waits, before a launch that adds, for the sums of the micro-batch before. Adds the time to
  /// `sum`, in nanoseconds.
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
  /// A launch is done.
  void publish(int launch) const {
    if (hands_on_)
      for_each_sum(chunk_, view_, view_.launches[launch], [&](parameter_place const& p) {
        transport_.send(stream(p, micro_batch_), micro_batch_);
      });
  }
  /// The program is done.
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
