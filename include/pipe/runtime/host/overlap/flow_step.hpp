// SPDX-License-Identifier: BSL-1.0
//
// A step that overlaps others: its mini-batch, and what the ranks have measured in it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/optim/clip.hpp>
#include <pipe/runtime/actions.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/overlap/early_part.hpp>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/kept_segments.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::detail {

/// An accumulation of a step: a run of the schedule. A step has one accumulation, or with
/// GradientAccumulation several.
struct flow_accumulation {
  job of;
  int first = 0, next_first = 0;  ///< the first micro-batch's number, and the next accumulation's

  int micro_batches(pipeline_description const& d) const {
    int n = 0;
    while (n < d.micro_batches && samples_in(d, of, n) > 0) ++n;
    return n;
  }
  /// Numbers the accumulation's micro-batches from `next` on, which becomes the first number of the
  /// next accumulation. Holders of a chunk take numbers in turn, so an accumulation begins with a
  /// number of every chunk's first holder.
  ///
  /// pairs: the number of micro-batches after which every chunk's first holder has one again
  void number(pipeline_description const& d, int pairs, int& next) {
    first = next;
    next += micro_batches(d) + pairs - 1;
    next -= next % pairs;
    next_first = next;
  }
  /// Calls use(holder, number) with the last number of each holder in the accumulation, if some
  /// numbers of the accumulation have no micro-batch.
  template <class Use>
  void for_each_missing(pipeline_description const& d, Use const& use) const {
    if (first + micro_batches(d) == next_first) return;
    for (int h = 0; h < d.holders(); ++h) {
      chunk_description const& c = d.chunk[d.holder[h].chunk];
      if (int const last = next_first - c.holders + h - c.first_holder; last >= first) use(h, last);
    }
  }
};

/// A step in progress. The object is used again for later steps.
struct flow_step {
  job of;  ///< arrays are copies, padded to whole micro-batches; zeros for other replicas'
           ///< accumulations
  early_part early;
  double norm = 0;
  /// The length of the periods in which ranks here have ended the step, and the time that ranks
  /// have waited in these periods. The periods of a rank follow each other without a gap, whatever
  /// the steps of their actions.
  ///
  /// units: nanoseconds, added up over the ranks
  std::atomic<long> passed{0}, waited{0};
  long end = 0;  ///< time at which the step was judged

  [[gnu::cold]] void assemble(pipeline_description const& d, own_accumulations const& own) {
    long parameters = 0;
    for (int c = 0; c < d.chunks; ++c) parameters += d.chunk[c].parameters.count;
    losses_ = d.losses;
    report_ = heap_array<double>(2 * parameters + losses_);
    early.assemble(d);
    accumulations_ = heap_array<flow_accumulation>(own.count);
    for (int i = 0; i <= d.inputs; ++i)
      data_[i] = heap_array<std::byte>(long(own.all) * d.micro_batches * d.given_bytes(i));
    if (d.rows > 0) segments_.assemble(own.all * d.micro_batches * d.inputs, d.rows);
  }
  /// Copies the accumulations of a job's mini-batch that run in this process.
  void take(pipeline_description const& d, job const& given, own_accumulations const& own) {
    of = given;
    of.batch.place = data_place::loaded;
    for (int k = 0; k <= d.inputs; ++k)
      if (void const*& at = array_of(d, of, k); at != nullptr) at = data_[k].begin();
    if (given.batch.segments != nullptr) {
      for (int n = 0; n < own.all * d.micro_batches * given.batch.axes; ++n)
        segments_.keep(n, given.batch.segments[n]);
      of.batch.segments = segments_.lists();
    }
    for (int i = 0; i < own.count; ++i) {
      int const accumulation = own.number_of(i), most = d.micro_batches * d.samples,
                begin = accumulation * most;
      // The samples that are copied: with segments whole micro-batches, of any number of samples.
      bool const is_dense = of.batch.segments != nullptr;
      int const from = is_dense || begin < of.batch.samples ? begin : of.batch.samples,
                left = of.batch.samples - from, here = is_dense || left > most ? most : left;
      job& j = accumulations_[i].of = of;
      if (is_dense) {
        j.batch.segments += accumulation * d.micro_batches * of.batch.axes;
        j.batch.samples = samples_of_segments(d, j);
      } else {
        j.batch.samples = here;
        j.part.first_sample += from;
      }
      j.part.accumulation = i, j.part.accumulations = own.count;
      j.part.replicas = own.replicas, j.part.shares = own.shares;
      j.part.first_micro_batch = accumulation * d.micro_batches;
      j.update.applies = of.update.applies && is_last_accumulation(j);
      for (int k = 0; k <= d.inputs; ++k) {
        void const*& at = array_of(d, j, k);
        if (at == nullptr) continue;
        long const all = d.micro_batches * d.given_bytes(k), one = d.given_bytes(k) / d.samples;
        std::byte* const to = data_[k].begin() + accumulation * all;
        void const* const whole = k < d.inputs ? given.batch.input[k] : given.batch.label;
        std::memcpy(to, static_cast<std::byte const*>(whole) + from * one, std::size_t(here * one));
        std::memset(to + here * one, 0, std::size_t(all - here * one));
        at = to;
      }
    }
    early.find(d, accumulations_[0].micro_batches(d));
    passed.store(0, std::memory_order_relaxed), waited.store(0, std::memory_order_relaxed);
  }
  /// Adds a period of a rank.
  ///
  /// needs: waited <= passed
  void add_period(long rank_passed, long rank_waited) {
    passed.fetch_add(rank_passed, std::memory_order_relaxed);
    waited.fetch_add(rank_waited, std::memory_order_relaxed);
  }
  /// The fraction of the ranks' time that they have waited, in [0, 1].
  double bubble() const {
    long const all = passed.load();
    return all > 0 ? double(waited.load()) / double(all) : 0;
  }
  /// Numbers the micro-batches of the step's accumulations: see flow_accumulation::number.
  void number(pipeline_description const& d, int pairs, int& next) {
    for (flow_accumulation& l : accumulations_) l.number(d, pairs, next);
  }
  flow_accumulation const& accumulation(int i) const { return accumulations_[i]; }
  /// The first number of the next step's micro-batches.
  int next_first() const { return accumulations_[accumulations_.size() - 1].next_first; }
  /// The number of the step's last micro-batch in this process, counted through its accumulations;
  /// 0 if there is none.
  int last_micro_batch(pipeline_description const& d) const {
    int all = 0;
    for (flow_accumulation const& l : accumulations_) all += l.micro_batches(d);
    return all > 0 ? all - 1 : 0;
  }
  /// The squared norms of a chunk's gradients: see norms_of.
  double* squares_of(pipeline_description const& d, int chunk) {
    double* at = report_.begin();
    for (int c = 0; c < chunk; ++c) at += 2 * d.chunk[c].parameters.count;
    return at;
  }
  /// Sets the value of each loss, behind the squared norms.
  void set_losses(loss_values const& to) {
    for (int i = 0; i < losses_; ++i) report_[squares() + i] = to[i];
  }
  loss_values losses() const { return {report_.begin() + squares(), losses_}; }
  double loss() const { return of.loss.further.sum_of(losses().items); }
  /// The address `bytes` from the start of the report on the step: see for_each_report_stream.
  void* report_at(long bytes) { return reinterpret_cast<char*>(report_.begin()) + bytes; }
  void const* report_at(long bytes) const {
    return reinterpret_cast<char const*>(report_.begin()) + bytes;
  }

  /// Norm and clipping factor, once all ranks have measured.
  ///
  /// law: sums are in parameter order, as in parameter_operations::judge
  gradient_outcome outcome() const {
    double sums[2]{};
    for (long i = 0; i < squares(); ++i) sums[i % 2] += report_[i];
    bool const clamps = of.update.clip_value > 0;
    return outcome_of(sums[0], sums[clamps], of.update.gradient_scale, of.update.clip_norm);
  }
  bool is_sound(gradient_outcome const& o) const {
    return libm::isfinite(o.norm) && libm::isfinite(loss());
  }
  /// Whether an update that assumed a sound step without clipping was right.
  bool is_as_updated(gradient_outcome const& o) const {
    return is_sound(o) && o.factor == of.update.gradient_scale;
  }

 private:
  long squares() const { return report_.size() - losses_; }
  /// A job's array of an input; of the labels for input number d.inputs.
  static void const*& array_of(pipeline_description const& d, job& j, int input) {
    return input < d.inputs ? j.batch.input[input] : j.batch.label;
  }

  heap_array<flow_accumulation> accumulations_;
  int losses_ = 1;
  heap_array<double> report_;                   // squares [parameters, 2] of all chunks, losses
  heap_array<std::byte> data_[max_inputs + 1];  // by input, then labels
  kept_segments segments_;
};

}  // namespace pp::detail
