// SPDX-License-Identifier: BSL-1.0
//
// The actions of ranks in this process: the wait for an action's dependencies, the programs of the
// action on the rank's threads, and the milestones that it publishes. The caller decides in which
// order a rank runs actions, and of which mini-batches.
#pragma once

#include <cstring>
#include <string>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/host/core/accumulation_sums.hpp>
#include <pipe/runtime/host/core/activity.hpp>
#include <pipe/runtime/host/core/arena.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/batch_of_rank.hpp>
#include <pipe/runtime/host/core/launches.hpp>
#include <pipe/runtime/host/core/parameters.hpp>
#include <pipe/runtime/host/core/rank_link.hpp>
#include <pipe/runtime/host/core/team.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/transport/waiting.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// A rank's thread, and the rank's team, memory and state.
template <class T, class Transport>
struct alignas(64) rank_worker {
  thread own;
  team threads;  // `own` and its helpers
  activity doing;
  arena memory;
  accumulation_sums<T, Transport> sums;
  int count = 0;  // actions executed in this run
  long waited = 0;
};

/// The mini-batch of an action and, where steps overlap, the action's place among them.
struct action_context {
  job const& of;
  /// Added to a micro-batch's number in its mini-batch for its number in rings and milestones.
  int shift = 0;
  /// Bytes from slot 0 of the chunk's weights to the version that the action reads.
  long weights = 0;
  /// For the records of executed actions: the step, and the micro-batches of the step before this
  /// run.
  int step = 0, micro_batches_before = 0;
};

/// Runs actions of any local rank, each on the rank's thread.
///
/// needs: the arguments of the constructor live as long
template <class T, class Transport>
class action_runner {
  using worker = rank_worker<T, Transport>;
  using clock = std::chrono::steady_clock;
  static constexpr bool streams = stream_transport<Transport>;

 public:
  action_runner(pipeline_description const& d, backend_calls<T> const& calls, Transport& transport,
                parameter_operations<T, Transport>& parameters, heap_array<worker>& ranks,
                failure_flag const& failed)
      : d_(d), calls_(calls), transport_(transport), parameters_(parameters), ranks_(ranks),
        failed_(failed), reads_inputs_(calls.narrow != nullptr ? d.chunks : 0) {
    for (long c = 0; c < reads_inputs_.size(); ++c)
      reads_inputs_[c] =
          reads_copies_of_inputs(d.chunk[c].keeping) || reads_copies_of_inputs(d.chunk[c].dropping);
  }

  /// Begins a run, from whose start times count.
  void begin() { begin_ = clock::now(); }
  clock::time_point began() const { return begin_; }
  /// Moves the start of the run by nanoseconds; the caller changes the times that were taken.
  void begin_later(long by) { begin_ += std::chrono::nanoseconds(by); }
  /// A scope in which actions are of steps that overlap, with these boundaries.
  class part_of_flow {
   public:
    part_of_flow(action_runner& r, boundary_flow<Transport>& flow) : of_(r) { of_.flow_ = &flow; }
    ~part_of_flow() { of_.flow_ = nullptr; }
    part_of_flow(part_of_flow const&) = delete;
    part_of_flow& operator=(part_of_flow const&) = delete;

   private:
    action_runner& of_;
  };
  /// Nanoseconds from the start of the run.
  long now() const { return std::chrono::nanoseconds(clock::now() - begin_).count(); }

  rank_link<Transport> link(int r, job const& j) { return {d_, j, transport_, r, failed_, flow_}; }
  host::batch_of_rank batch_of(int r, job const& j) const {
    return {d_, j, d_.rank[r], ranks_[r].memory.data()};
  }
  /// The actions that rank r executed in the last run, in order.
  executed_action* executed(int r) const {
    return planned<executed_action>(r, d_.rank[r].executed);
  }

  /// Executes an action of rank r. `second`: the second action of a pair, for whose inputs the
  /// first waits as well; null for none.
  void execute(int r, action_context const& at, action a, action const* second = nullptr) {
    worker& me = ranks_[r];
    long const arrived = now();
    a.with_next = second != nullptr && samples_in(d_, at.of, second->micro_batch) > 0;
    await(r, at, a, arrived);
    if (a.with_next) await(r, at, *second, arrived), me.doing.begin(a);
    long const start = now();
    me.waited += start - arrived;
    me.doing.change(activity::kind::runs, 0, start);
    run(r, me, at, a);
    me.sums.after(a);
    long const end = now();
    a.micro_batch += at.micro_batches_before;
    record(r, {a, at.step, start, end, start - arrived});
  }
  /// Adds to the records of rank r.
  ///
  /// needs: room for a record more: see step_memory::records
  void record(int r, executed_action const& a) { executed(r)[ranks_[r].count++] = a; }
  /// Sends or receives the result of an action.
  void run_transfer(int r, job const& j, rank_instruction const& s) {
    worker& me = ranks_[r];
    long const arrived = now();
    me.doing.begin(s.of);
    me.doing.change(
        s.kind == instruction_kind::send ? activity::kind::sends : activity::kind::receives, s.peer,
        arrived);
    require(r, link(r, j).run(s));
    me.waited += now() - arrived;
  }
  void pass_barrier(int r, int number) {
    worker& me = ranks_[r];
    long const start = now();
    me.doing.change(activity::kind::meets, 0, start);
    require(r, transport_.arrive_and_wait(r, number, failed_));
    me.waited += now() - start;
  }
  /// Rank r's side of transfers.
  auto sharing(int r, job const& j) {
    return [this, r, &j](transfer const& x) {
      ranks_[r].doing.share(x, r, now());
      require(r, link(r, j).share(x));
    };
  }
  /// Throws unless a wait of rank r is done.
  void require(int r, waited outcome) {
    if (outcome != waited::done) stopped(r);
  }

 private:
  /// The items at an offset of a rank's arena.
  template <class Item>
  Item* planned(int rank, long offset) const {
    return reinterpret_cast<Item*>(ranks_[rank].memory.data() + offset);
  }
  /// Waits for the dependencies of an action of rank r. arrived: when the wait begins
  void await(int r, action_context const& at, action const& a, long arrived) {
    activity& doing = ranks_[r].doing;
    doing.begin(a);
    action numbered = a;
    numbered.micro_batch += at.shift;
    require(r, link(r, at.of).await(numbered, [&](int chunk) {
      doing.change(activity::kind::waits, chunk, arrived);
    }));
  }
  [[noreturn, gnu::cold]] void stopped(int r) {
    if constexpr (streams)
      if (std::string const why = transport_.announced(); !why.empty()) throw rank_error(why);
    throw_error<rank_error>({"rank ", r, " stopped because another rank failed"});
  }

  void run(int r, worker& me, action_context const& place, action const& a) {
    int const c = a.chunk, mb = a.micro_batch;
    job const& j = place.of;
    region_bases const at = bases_for(r, place, c, mb);
    run_action(
        d_, j, a,
        [&](program_set const& set, program p) { run_program(a, set, p, at, r, me, place); },
        [&](view<copied> const& all) {
          for (copied const& what : all)
            std::memcpy(at.at(what.to), at.at(what.from), std::size_t(what.bytes));
        },
        [&](address const& from, int output) {
          long const each = d_.output[output].bytes / calls_.value_bytes;
          if (segment_list const* const rows = output_segments_in(d_, j, mb, output))
            return deliver_rows(*rows, at.at(from), each / rows->planned_rows,
                                static_cast<T*>(j.batch.output[output]));
          calls_.from_values(at.at(from), each / d_.samples * samples_in(d_, j, mb),
                             static_cast<T*>(j.batch.output[output]) + mb * each);
        },
        [&](milestone m) { link(r, j).publish(c, m, mb, place.shift); });
    if (j.of_inputs && c == 0 && makes_input_gradient(a.kind)) deliver_input_gradients(j, at, mb);
  }
  /// Copies the rows of an output that the caller has given, from their segments to their places
  /// among all rows of the mini-batch.
  [[gnu::cold]] void deliver_rows(segment_list const& of, char const* from, long columns,
                                  T* to) const {
    for (int s = 0; s < of.count; ++s)
      calls_.from_values(from + of.first[s] * columns * calls_.value_bytes, of.given[s] * columns,
                         to + of.place[s] * columns);
  }
  /// Copies the gradients of inputs of a micro-batch to the caller, from where the first chunk's
  /// backward has left them.
  [[gnu::cold]] void deliver_input_gradients(job const& j, region_bases const& at, int mb) const {
    for (int i = 0; i < d_.inputs; ++i) {
      if (j.batch.input_gradient[i] == nullptr) continue;
      long const each = d_.input_bytes[i] / calls_.value_bytes;
      calls_.from_values(at.at(d_.chunk[0].set_for(mb).input_gradients[i]),
                         each / d_.samples * samples_in(d_, j, mb),
                         static_cast<T*>(j.batch.input_gradient[i]) + mb * each);
    }
  }
  /// Whether a program reads an input that is converted.
  [[gnu::cold]] bool reads_copies_of_inputs(program_set const& set) const {
    for (program_view const& p : set.programs)
      for (launch const *l = p.launches, *end = l + p.count; l != end; ++l)
        for (int k = 0; k < l->count; ++k)
          for (int i = 0; i < d_.inputs; ++i)
            if (d_.is_copied_input(i) && p.operands[l->first + k].at.where == input_region(i))
              return true;
    return false;
  }
  region_bases bases_for(int r, action_context const& place, int c, int mb) const {
    region_bases b = arena_bases(
        d_, c, mb, [this](int rank) { return ranks_[rank].memory.data(); },
        [this](transfer const& x) { return transport_.at(x); }, place.shift, place.weights);
    b.set(region::random, reinterpret_cast<char*>(const_cast<int*>(d_.streams.items)));
    host::batch_of_rank const batch = batch_of(r, place.of);
    if (calls_.narrow != nullptr && reads_inputs_[c]) batch.convert(calls_, mb);
    batch.set(b, mb);
    return b;
  }
  void run_program(action const& of, program_set const& set, program p, region_bases const& at,
                   int r, worker& me, action_context const& place) {
    job const& j = place.of;
    int const c = of.chunk, mb = of.micro_batch;
    program_view const& view = set.programs[int(p)];
    auto a = host::arguments_of<T>(d_, j, mb, me.memory.data() + d_.rank[r].workspace);
    a.unit = calls_.unit;
    if (d_.rank[r].row_losses >= 0) a.loss = planned<double>(r, d_.rank[r].row_losses);
    auto const order = link(r, j).order_of(of, set, p, place.shift);
    // The loss is the last launch; inference leaves it out.
    bool const has_loss = c == d_.chunks - 1 && j.what != job::kind::infer;
    int const count = view.count - (c == d_.chunks - 1 && !has_loss ? 1 : 0);
    require(r, order.begin());
    for (int i = 0; i < count; ++i) {
      launch const& l = view.launches[i];
      a.segments = segments_in(j, mb, l.axis);
      a.key_segments = segments_in(j, mb, l.key_axis);
      if (j.of_inputs && adds_to_sums(view, i)) continue;
      require(r, me.sums.place(c, set, p, i, at, a.operand));
      a.panels = l.panels;
      require(r, order.await(i, me.doing, me.waited, [this] { return now(); }));
      me.doing.run_layer(l.layer);
      if (j.watch.see == nullptr)
        host::run_launch(d_, calls_, l, a, me.threads);
      else
        host::run_watched(
            d_, calls_, j, a, me.threads,
            {r, c, j.part.first_micro_batch + mb, p, i, 0, &l, view.operands + l.first});
      order.publish(i);
      me.sums.after_launch(c, set, view, i);
    }
    order.end();
    if (p == program::forward && has_loss) parameters_.set_loss(j, mb, a.loss);
  }

  pipeline_description const& d_;
  backend_calls<T> const& calls_;
  Transport& transport_;
  parameter_operations<T, Transport>& parameters_;
  heap_array<worker>& ranks_;
  failure_flag const& failed_;
  heap_array<bool> reads_inputs_;  // by chunk; empty where no input is converted
  boundary_flow<Transport>* flow_ = nullptr;
  clock::time_point begin_;
};

}  // namespace pp::detail
PIPE_OPTIMIZED_END
