// SPDX-License-Identifier: BSL-1.0
//
// The reports of processes on steps that overlap: the squared norms of each chunk's gradients, and
// the losses. Every process adds the norms up in the order of the model, so all processes come to
// the same outcome without another message.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <pipe/base/config.hpp>
#include <pipe/runtime/host/core/rank_link.hpp>
#include <pipe/runtime/host/overlap/flow_step.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The reports that this process sends and receives. Steps have numbers from 0 in a segment.
/// Reports are kept in rings in the arenas, with a place for each step in progress.
///
/// law: a rank that reports waits for another process only if that process has received the reports
///      of report_slots steps less
template <class Transport>
class step_reports {
 public:
  step_reports(pipeline_description const& d, Transport& transport, process_place const& place)
      : d_(d), transport_(transport), place_(place) {}

  /// Compares what all processes take: each mini-batch, as a call, and after the last the end.
  ///
  /// throws: rank_error if another process has failed, or takes something else
  void compare(process_call::kinds what, job const& j, std::uint64_t optimizer) {
    end();
    transport_.begin_call(call_of(what, j, optimizer));
    is_in_call_ = true;
  }
  void end() {
    if (std::exchange(is_in_call_, false)) transport_.end_call();
  }
  /// Begins a segment.
  ///
  /// needs: all that was expected is received
  void begin() { expected_.store(0); }
  /// Notes that a step is certain to be measured. For the first rank here that calls this, the
  /// reports are expected.
  ///
  /// needs: of the steps before this step, the reports of all but report_slots - 1 are received
  void expect(int step) {
    int before = step;
    if (expected_.compare_exchange_strong(before, step + 1))
      for_each_here([&](int number, boundary_stream const&) { transport_.expect(number, step); });
  }
  /// Waits for the reports of all other processes on a step, and copies them to `into`.
  waited receive(int step, flow_step& into, failure_flag const& failed) {
    waited all = waited::done;
    for_each_here([&](int number, boundary_stream const& s) {
      if (all == waited::done) all = transport_.receive(number, step, failed);
      if (all == waited::done)
        std::memcpy(into.report_at(s.first.to - d_.rank[s.first.to_rank].reports),
                    room(s.first.to_rank, s.of(step).to), std::size_t(s.first.bytes));
    });
    return all;
  }
  /// On the thread of rank r: sends the rank's report on a step to all other processes.
  waited send(int r, int step, flow_step const& of, failure_flag const& failed) {
    int const before = step - d_.report_slots;
    if (before >= 0)
      if (waited const w = sent(r, before, failed); w != waited::done) return w;
    for_each_from(r, [&](int number, boundary_stream const& s) {
      std::memcpy(room(r, s.of(step).from), of.report_at(s.first.from - d_.rank[r].reports),
                  std::size_t(s.first.bytes));
      transport_.send(number, step, {});
    });
    return waited::done;
  }
  /// On the thread of rank r: waits until the rank's reports up to a step have arrived.
  waited sent(int r, int step, failure_flag const& failed) {
    waited all = waited::done;
    for_each_from(r, [&](int number, boundary_stream const&) {
      if (all == waited::done) all = transport_.sent(number, step, failed);
    });
    return all;
  }

 private:
  char* room(int rank, long at) const { return transport_.at({rank, rank, at, at, 0}); }
  /// use(number, stream) for the streams to this process.
  template <class Use>
  void for_each_here(Use const& use) const {
    for_each_report_stream(d_, place_.first_rank, [&](int number, boundary_stream const& s) {
      if (!place_.has(s.first.from_rank)) use(number, s);
    });
  }
  /// use(number, stream) for the streams of rank r to other processes.
  template <class Use>
  void for_each_from(int r, Use const& use) const {
    for (int reader = 0; reader < d_.ranks; ++reader)
      if (!place_.has(reader) && is_first_of_process(transport_, reader))
        for_each_report_stream(d_, reader, [&](int number, boundary_stream const& s) {
          if (s.first.from_rank == r) use(number, s);
        });
  }

  pipeline_description const& d_;
  Transport& transport_;
  process_place place_;
  bool is_in_call_ = false;
  std::atomic<int> expected_{0};  // steps whose reports are expected
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
