// SPDX-License-Identifier: BSL-1.0
//
// The runs of a mini-batch: one, or one for each accumulation of a sum (see GradientAccumulation)
// that this process has.
#pragma once

#include <cstddef>
#include <type_traits>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/data/inputs.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/plan/options/lengths.hpp>
#include <pipe/plan/options/transport.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/sum_tree.hpp>
#include <pipe/train/parts/replica_check.hpp>
#include <pipe/train/parts/replica_speeds.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// Whether replicas of compiled pipeline P must have equal numbers of accumulations: on devices,
/// where a prefetched mini-batch is one piece; and where replicas bring parameters together in
/// every run.
template <class P>
inline constexpr bool divides_evenly =
    device_transport<typename P::transport> || (P::zero::level > 2);

/// The accumulations of a mini-batch, in all and of each replica.
struct batch_accumulations {
  int accumulations = 1, samples = 1;  ///< of a mini-batch; of an accumulation
  int micro_batches = 1;               ///< of an accumulation
  int replica = 0, replicas = 1;
  heap_array<int> counts;  ///< accumulations of each replica, of several

  /// The accumulations of compiled pipeline P: those of GradientAccumulation, or one for each
  /// replica.
  ///
  /// throws: error if replicas cannot share the accumulations
  template <class P>
  static batch_accumulations of() {
    process_place const place = P::transport::place(P::ranks);
    int const given = P::sum::accumulations, replicas = place.replicas;
    if constexpr (connects_replicas<typename P::transport>) {
      if (given > 1 && given < replicas)
        throw_error<error>({"GradientAccumulation<", given, "> has ", given,
                            " accumulations, which ", replicas,
                            " replicas cannot share: there must be one for each"});
      if (divides_evenly<P> && given > 1 && given % replicas != 0)
        throw_error<error>({"GradientAccumulation<", given, "> has ", given,
                            " accumulations, which ", replicas,
                            " replicas cannot divide evenly, as they must on GPUs and with "
                            "ZeRO<3>: their number must be a power of two"});
    }
    batch_accumulations s{given > 1 ? given : replicas,
                          P::micro_batches * P::samples,
                          P::micro_batches,
                          place.replica,
                          replicas,
                          heap_array<int>(replicas > 1 ? replicas : 0)};
    for (int r = 0; r < s.counts.size(); ++r) s.counts[r] = even_share(given, replicas, r);
    return s;
  }
  /// The number of accumulations that run in this process, and the i-th of them.
  int count() const { return replicas > 1 ? counts[replica] : accumulations; }
  int number_of(int i) const { return own().number_of(i); }
  own_accumulations own() const {
    return {count(), accumulations, replica, replicas, counts.begin()};
  }
  /// throws: error if a mini-batch has several accumulations, for accumulation
  void require_one() const {
    if (accumulations > 1)
      throw_error<error>(
          {"accumulate(): a mini-batch of ", replicas,
           " replicas is a sum already: give GradientAccumulation<G> more accumulations"});
  }
  /// All accumulations in this process.
  batch_accumulations alone() const { return {accumulations, samples, micro_batches, 0, 1, {}}; }
  /// The part of a mini-batch of model M with `number` accumulations from accumulation `begin` on,
  /// as one job, which has no samples if the mini-batch ends before. Element: the type of real
  /// inputs, labels and outputs
  template <class M, class Element>
  job part_of(job const& whole, int begin, int number) const {
    constexpr auto const& inputs = model_tables<M>::inputs;
    constexpr auto const& outputs = model_tables<M>::loss_inputs;
    constexpr graph_view const outline = model_tables<M>::outline;
    auto const after = [](auto* from, long items, std::size_t bytes) {
      using byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(from)>>,
                                      char const, char>;
      return from == nullptr ? from : static_cast<byte*>(from) + items * long(bytes);
    };
    job j = whole;
    long const given = long(begin) * samples, most = long(number) * samples,
               from = given < whole.batch.samples || whole.batch.segments != nullptr
                          ? given
                          : whole.batch.samples,
               left = whole.batch.samples - from;
    j.batch.samples = int(left < most ? left : most);
    j.part.first_sample = whole.part.first_sample + from;
    if (whole.batch.segments != nullptr) take_segments(whole, begin, number, j);
    for (int i = 0; i < outline.inputs.count; ++i)
      j.batch.input[i] = after(whole.batch.input[i], from * inputs[i].form.elements(),
                               inputs[i].is_ids ? sizeof(int) : sizeof(Element));
    for (int i = 0; i < outline.inputs.count; ++i)
      j.batch.input_gradient[i] =
          after(whole.batch.input_gradient[i], from * inputs[i].form.elements(), sizeof(Element));
    j.batch.label = after(whole.batch.label, from * model_tables<M>::labels,
                          M::labels_are_ids ? sizeof(int) : sizeof(Element));
    for (int i = 0; i < outputs.size(); ++i)
      // Segments say where the rows of an output are in the whole array.
      if (outputs[i].axis == 0 || j.batch.segments == nullptr)
        j.batch.output[i] =
            after(whole.batch.output[i], from * outputs[i].elements, sizeof(Element));
    return j;
  }

 private:
  /// The segments of a part, whose first samples count in the whole mini-batch.
  void take_segments(job const& whole, int begin, int number, job& j) const {
    j.part.first_sample = whole.part.first_sample;
    j.batch.segments = whole.batch.segments + begin * micro_batches * whole.batch.axes;
    j.batch.samples = 0;
    for (int mb = 0; mb < number * micro_batches; ++mb)
      j.batch.samples += segments_in(j, mb, 1)->count;
  }
};

/// The runs of compiled pipeline P's mini-batches, of which this process has its share of
/// accumulations.
template <class P>
class accumulation_runs : public batch_accumulations {
  static constexpr bool moves_accumulations =
      P::sum::room > 1 && replica_transport<typename P::transport>;
  static constexpr int ranks = P::ranks;

 public:
  accumulation_runs() : batch_accumulations(batch_accumulations::of<P>()) {}
  /// To be called once, in all processes. speed: that of this process, see
  /// GradientAccumulationBySpeed; 0: not stated
  template <class Engine>
  [[gnu::cold]] void state([[maybe_unused]] Engine& engine, [[maybe_unused]] double speed) {
    if constexpr (moves_accumulations)
      if (replicas > 1) speeds_.state(engine, speed, replica, accumulations, most(), counts);
  }
  /// Runs the accumulations of a mini-batch that this process has; for an inference, all
  /// accumulations. Without labels the loss is NaN, except in steps and accumulation, whose losses
  /// are over all labels.
  template <class Engine>
  step_result run(Engine& engine, job const& whole) {
    step_result r = run_accumulations(engine, whole);
    using kind = job::kind;
    if (whole.what == kind::evaluate ||
        (whole.what == kind::train && !whole.update.applies && !whole.part.is_continued))
      r.loss = loss_of(r.losses, whole.loss.further, [&](int i) { return whole.loss.terms_of(i); });
    return r;
  }
  /// The part of a mini-batch that this process runs.
  ///
  /// needs: consecutive accumulations
  job here(job const& whole) const {
    return part_of<typename P::model, typename P::element>(whole, number_of(0), count());
  }
  /// Ends a step, which has succeeded, on mini-batch `whole`. After each `every`-th step replicas
  /// are compared.
  ///
  /// throws: as compare_replicas
  template <class Engine>
  void end_step(parameter_memory<Engine> const& parameters, [[maybe_unused]] job const& whole,
                long step, long every) {
    if constexpr (moves_accumulations)
      if (replicas > 1 && fills_accumulations(whole))
        speeds_.end_step(*parameters.engine, replica, accumulations, most(), counts);
    if (replicas > 1 && every > 0 && step % every == 0) compare_replicas<P>(parameters, step);
  }

 private:
  template <class Engine>
  step_result run_accumulations(Engine& engine, job const& whole) {
    if constexpr (P::may_accumulate)
      if (accumulations > 1)
        return whole.what == job::kind::infer ? run_each(engine, whole, alone())
                                              : run_each(engine, whole, *this);
    return engine.run(whole);
  }
  int most() const { return most_accumulations(accumulations, replicas, P::sum::room); }
  /// Runs accumulations one by one. Only the last accumulation updates and has a result, which is
  /// returned with the times of all accumulations.
  template <class Engine>
  step_result run_each(Engine& engine, job const& whole, batch_accumulations const& s) {
    step_result all;
    double waited = 0, seconds = 0;
    for (int i = 0, count = s.count(); i < count; ++i) {
      int const accumulation = s.number_of(i);
      job j = s.part_of<typename P::model, typename P::element>(whole, accumulation, 1);
      j.part.whole = &whole;
      j.part.accumulation = i;
      j.part.accumulations = count;
      j.part.replicas = s.replicas;
      j.part.shares = s.counts.begin();
      j.part.first_micro_batch = accumulation * P::micro_batches;
      j.update.applies = whole.update.applies && i + 1 == count;
      all = engine.run(j);
      seconds += all.seconds;
      waited += all.seconds * all.bubble;
      // In the last accumulation a rank may wait for other replicas, so its time counts only where
      // it is the only accumulation.
      if constexpr (moves_accumulations)
        if (whole.update.applies && fills_accumulations(whole) && (i + 1 < count || count == 1))
          speeds_.note(time_of_actions(engine), part_of_rows(j, P::micro_batches));
    }
    all.seconds = seconds;
    all.bubble = seconds > 0 ? waited / seconds : 0;
    return all;
  }
  /// Whether the times of a mini-batch's accumulations are measured: all are full or, with Lengths,
  /// each has samples.
  bool fills_accumulations(job const& whole) const {
    if (whole.batch.segments == nullptr) return whole.batch.samples == accumulations * samples;
    bool all = true;
    for (int i = 0; i < accumulations; ++i)
      all = all && segments_in(whole, i * micro_batches, 1)->count > 0;
    return all;
  }
  /// The time until the last action of the run that has ended, in nanoseconds.
  template <class Engine>
  static long time_of_actions(Engine const& engine) {
    long last = 0;
    for (int r = 0; r < ranks; ++r)
      if (int const n = engine.executed_count(r); n > 0)
        if (long const end = engine.executed(r)[n - 1].end; end > last) last = end;
    return last;
  }

  struct nothing {};
  std::conditional_t<moves_accumulations, replica_speeds, nothing> speeds_;
};

}  // namespace pp::detail
