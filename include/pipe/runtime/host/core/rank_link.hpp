// SPDX-License-Identifier: BSL-1.0
//
// The link of a rank to the other ranks during a run: waits, milestones, sends and receives. The
// three kinds of transports (shared memory, copies, streams) differ here and nowhere else in the
// executor.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/fingerprint.hpp>
#include <pipe/runtime/host/core/boundary_flow.hpp>
#include <pipe/runtime/host/core/sum_order.hpp>
#include <pipe/runtime/host/core/sum_ring.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/sum_tree.hpp>
#include <pipe/runtime/transfers.hpp>
#include <pipe/schedule/rank_instruction.hpp>
#include <pipe/transport/transport.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Whether a rank is the first of its process.
template <stream_transport Transport>
bool is_first_of_process(Transport const& transport, int rank) {
  return rank == 0 || transport.process_of(rank) != transport.process_of(rank - 1);
}
/// Compares the pipelines of all processes, and opens the streams between ranks.
///
/// throws: error if another process has another pipeline
template <stream_transport Transport>
[[gnu::cold]] void open_streams(pipeline_description const& d, Transport& transport) {
  transport.agree(fingerprint(d));
  auto const open = [&](int number, boundary_stream const& s) { transport.open(number, s); };
  for_each_stream(d, open);
  for_each_sum_stream(d, open);
  for (int r = 0; r < d.ranks; ++r)
    if (is_first_of_process(transport, r)) for_each_report_stream(d, r, open);
}

/// A call in the form in which processes compare calls. optimizer: a hash of the optimizer's
/// settings
inline process_call call_of(process_call::kinds kind, job const& j, std::uint64_t optimizer) {
  process_call c;
  c.kind = kind;
  c.seed = j.seed, c.optimizer = optimizer, c.labels = j.batch.label_hash;
  c.lengths = j.batch.length_hash;
  c.samples = j.batch.samples, c.loss_terms = j.loss.terms;
  c.step = double(j.step), c.learning_rate = j.update.learning_rate;
  c.clip_value = j.update.clip_value, c.clip_norm = j.update.clip_norm;
  for (int i = 0; i < most_losses; ++i)  // an inference has no labels
    if (j.batch.output[i] != nullptr) c.labels |= std::uint64_t(1) << i;
  return c;
}
/// Begins a run and, with the first run of a call, the call. optimizer: a hash of the optimizer's
/// settings
///
/// throws: rank_error if another process has failed
template <transport Transport>
void begin_run(job const& run, [[maybe_unused]] std::uint64_t optimizer, Transport& transport) {
  transport.reset();
  if constexpr (stream_transport<Transport>) {
    if (run.part.accumulation > 0) return;
    job const& j = run.part.whole != nullptr ? *run.part.whole : run;
    using kinds = process_call::kinds;
    kinds const kind = j.what == job::kind::infer      ? kinds::forward
                       : j.what == job::kind::evaluate ? kinds::evaluate
                       : j.part.is_continued           ? kinds::accumulate
                       : j.update.applies              ? kinds::step
                                                       : kinds::gradients;
    transport.begin_call(call_of(kind, j, optimizer));
  }
}
/// Ends a run and, with the last run of a call, the call. Gives the outputs of an inference to all
/// processes.
///
/// throws: error if another process makes another call
template <stream_transport Transport>
void end_run(pipeline_description const& d, job const& j, Transport& transport) {
  if (is_last_accumulation(j)) transport.end_call();
  if (j.what != job::kind::infer) return;
  // Holders of the last chunk in several processes have made the outputs of micro-batches in turn.
  auto const maker = [&](int mb) {
    return transport.process_of(d.holder[d.holder_of(d.chunks - 1, mb)].rank);
  };
  for (int first = 0, end = 0; samples_in(d, j, first) > 0; first = end) {
    long samples = 0;
    for (; samples_in(d, j, end) > 0 && maker(end) == maker(first); ++end)
      samples += samples_in(d, j, end);
    for_each_output(d, j, [&](int output) {
      long const bytes = d.in_numbers(d.output[output].bytes);
      long from = first * bytes, size = samples * (bytes / d.samples);
      if (segment_list const* const rows = output_segments_in(d, j, first, output)) {
        segment_list const& last = *output_segments_in(d, j, end - 1, output);
        long const row = bytes / rows->planned_rows, begin = rows->place[0];
        from = begin * row;
        size = (last.place[last.count - 1] + last.given[last.count - 1] - begin) * row;
      }
      transport.broadcast(maker(first), static_cast<char*>(j.batch.output[output]) + from, size);
    });
  }
}

/// One rank's link to the other ranks, in one run.
///
/// A transport that shares memory passes tokens: actions wait for milestones of other chunks. A
/// transport that copies executes the instructions of communicate(), in whose order only sends and
/// receives wait. A stream_transport makes requests before they are awaited: a rank expects the
/// values for which its slots have room, and waits for its own slot before an action that writes to
/// the slot.
template <transport Transport>
class rank_link {
  static constexpr bool streams = stream_transport<Transport>;

 public:
  /// flow: the boundaries where steps overlap, else null
  rank_link(pipeline_description const& d, job const& j, Transport& transport, int rank,
            failure_flag const& failed, boundary_flow<Transport>* flow = nullptr)
      : d_(d), j_(j), transport_(transport), rank_(rank), failed_(failed), flow_(flow) {}

  /// Begins the run: all slots are free.
  void begin() const {
    if constexpr (streams)
      for_each_stream_of_run([&](int number, boundary_stream const& s) {
        if (s.first.to_rank != rank_) return;
        for (int mb = s.begin; mb < s.to_slots * s.to_step; mb += s.step) expect(number, mb);
      });
  }
  /// Waits for the dependencies of an action, each after see(chunk), the chunk that is waited for.
  template <class See>
  waited await(action const& a, See const& see) const {
    waited all = waited::done;
    if constexpr (!Transport::copies)
      for_each_need(d_, a, [&](int chunk, milestone m, int mb) {
        see(chunk);
        if (all == waited::done && mb >= 0) all = wait(chunk, m, mb);
      });
    if constexpr (streams) {
      if (flow_ != nullptr) all = flow_->receive(a, see, failed_);
      if (all != waited::done) return all;
      chunk_description const& c = d_.chunk[a.chunk];
      bool const forward = a.kind == action_kind::forward;
      int const to = forward ? a.chunk + 1 : makes_input_gradient(a.kind) ? a.chunk - 1 : -1;
      int const before = (forward ? c.rings.boundary : c.rings.gradient).before(a.micro_batch);
      if (crosses(to, before)) {
        see(to);
        all = transport_.sent(stream_of(d_, {a.kind, a.chunk, before}), before, failed_);
      }
    }
    return all;
  }
  /// Sends or receives the result of an action.
  ///
  /// needs: s is a send or a receive
  waited run(rank_instruction const& s) const {
    if constexpr (streams) {
      if (s.kind == instruction_kind::receive)
        return transport_.receive(stream_of(d_, s.of), s.of.micro_batch, failed_);
      transport_.send(stream_of(d_, s.of), s.of.micro_batch, rows_in(j_, s.of.micro_batch));
      return waited::done;
    } else {
      return share(result_of(d_, s.of));
    }
  }
  /// Makes the rank's part of a transfer that is no result of an action, if the rank has a part.
  waited share(transfer const& x) const { return transport_.share(rank_, x, failed_); }
  /// Publishes that a chunk has passed a milestone with a micro-batch of the job: other ranks may
  /// read its values or, after `release`, send the next values to its slots. shift: see
  /// action_context
  void publish([[maybe_unused]] int chunk, [[maybe_unused]] milestone m,
               [[maybe_unused]] int in_job, [[maybe_unused]] int shift = 0) const {
    [[maybe_unused]] int const micro_batch = in_job + shift;
    if constexpr (!Transport::copies)
      transport_.publish(d_.holder_of(chunk, micro_batch), m, micro_batch);
    if constexpr (streams) {
      if (flow_ != nullptr)
        return flow_->publish(rank_, chunk, m, micro_batch, rows_in(j_, in_job));
      if (m != milestone::release) return;
      chunk_description const& c = d_.chunk[chunk];
      if (int const next = c.rings.received.after(micro_batch); crosses(chunk - 1, next))
        expect(values_stream(d_, chunk, next), next);
      if (int const next = c.rings.received_gradient.after(micro_batch);
          trains() && crosses(chunk + 1, next))
        expect(gradients_stream(d_, chunk, next), next);
    }
  }
  /// Begins the run for chunks that several ranks hold. An owner publishes that it has renewed the
  /// weights; other holders wait for this.
  waited share_weights() const {
    waited all = waited::done;
    if constexpr (!Transport::copies) {
      for (int c = 0; c < d_.chunks; ++c)
        if (chunk_description const& chunk = d_.chunk[c]; chunk.holders > 1 && chunk.rank == rank_)
          transport_.publish(chunk.first_holder, milestone::weights, 0);
      for (int n = 0; n < d_.holders() && all == waited::done; ++n)
        if (int const first = d_.chunk[d_.holder[n].chunk].first_holder;
            n > first && d_.holder[n].rank == rank_)
          all = transport_.wait(first, milestone::weights, 0, failed_);
    }
    return all;
  }
  /// Waits until all holders of this rank's chunks are done with the run. Forward-only runs have no
  /// order among holders, so the last micro-batch of each is awaited. An owner whose chunk has
  /// copies gets the sums from the holder that added last, and the losses from every holder.
  waited await_holders() const {
    waited all = waited::done;
    auto const get = [&](transfer const& x) {
      if (all == waited::done) all = share(x);
    };
    int const last = last_run();
    for (int c = 0; c < d_.chunks && trains() && last >= 0; ++c)
      if (chunk_description const& chunk = d_.chunk[c];
          chunk.has_copies() && last % chunk.holders > 0)
        get(sums_of(d_, chunk, last % chunk.holders, 0, 0, chunk.summed_bytes()));
    if (j_.what != job::kind::infer)
      for_each_copy(d_, [&](chunk_description const& c, chunk_holder const& h) {
        if (&c == d_.chunk + d_.chunks - 1) get(losses_of(d_, h));
      });
    if constexpr (!Transport::copies)
      for (int c = 0; c < d_.chunks; ++c) {
        chunk_description const& chunk = d_.chunk[c];
        if (chunk.rank != rank_ || chunk.holders == 1) continue;
        for (int mb = last; mb >= 0 && mb > last - chunk.holders && all == waited::done; --mb)
          all = wait(c, milestone::release, mb);
      }
    return all;
  }
  /// The order in which the kernels of an action's program add to the sums that the chunk's holders
  /// share. shift: see action_context; 0 between processes
  auto order_of(action const& a, program_set const& set, program p,
                [[maybe_unused]] int shift) const {
    if constexpr (streams)
      return sum_ring<Transport>(d_, j_, transport_, failed_, a, set, p);
    else
      return sum_order<Transport>(d_, j_, transport_, failed_, a, set, p, shift);
  }
  /// Waits until all that the rank has sent has arrived.
  waited end() const {
    waited all = waited::done;
    if constexpr (streams) {
      // A stream carries every step-th micro-batch from `begin` on; the last one up to `last` is
      // awaited.
      auto const await_sent = [&](int number, int step, int begin, int last) {
        if (all == waited::done && last >= begin)
          all = transport_.sent(number, last - (last - begin) % step, failed_);
      };
      int const last = last_run();
      for_each_stream_of_run([&](int number, boundary_stream const& s) {
        if (s.first.from_rank == rank_) await_sent(number, s.step, s.begin, last);
      });
      for (int n = 0; n < d_.holders() && trains(); ++n) {
        chunk_description const& c = d_.chunk[d_.holder[n].chunk];
        if (d_.holder[n].rank != rank_ || !c.has_copies()) continue;
        // Forward makes the sums of buffers, the weight program gradients; the parameters are the
        // same for every micro-batch.
        for (program_view const* view :
             {&c.set_for(0).programs[int(program::forward)], &c.set_for(0).weight_program()})
          for (int i = 0; i < view->count; ++i)
            for_each_sum(c, *view, view->launches[i], [&](parameter_place const& p) {
              int const begin = n - c.first_holder;
              await_sent(sum_stream(d_, c, begin, p), c.holders, begin, last - 1);
            });
      }
    }
    return all;
  }

 private:
  bool trains() const { return j_.what == job::kind::train; }
  bool runs(int micro_batch) const {
    return micro_batch < d_.micro_batches && samples_in(d_, j_, micro_batch) > 0;
  }
  /// The last micro-batch that runs; -1: none.
  int last_run() const {
    int last = d_.micro_batches - 1;
    while (last >= 0 && !runs(last)) --last;
    return last;
  }
  waited wait(int chunk, milestone m, int micro_batch) const {
    return transport_.wait(d_.holder_of(chunk, micro_batch), m, micro_batch, failed_);
  }
  /// Whether a chunk of this number exists and another rank runs it for a micro-batch.
  bool crosses(int chunk, int micro_batch) const {
    return micro_batch >= 0 && chunk >= 0 && chunk < d_.chunks &&
           d_.holder[d_.holder_of(chunk, micro_batch)].rank != rank_;
  }
  template <class Use>
  void for_each_stream_of_run(Use const& use) const {
    for_each_stream(d_, [&](int number, boundary_stream const& s) {
      if (trains() || number % 2 == 0) use(number, s);
    });
  }
  void expect(int number, int micro_batch) const {
    if (runs(micro_batch)) transport_.expect(number, micro_batch);
  }

  pipeline_description const& d_;
  job const& j_;
  Transport& transport_;
  int rank_;
  failure_flag const& failed_;
  boundary_flow<Transport>* flow_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
