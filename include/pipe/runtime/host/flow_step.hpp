// SPDX-License-Identifier: BSL-1.0
//
// A step among others that overlap it: its mini-batch, and what the ranks find out about it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#include <pipe/base/heap_array.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/optim/clip.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/early_part.hpp>
#include <pipe/runtime/job.hpp>

namespace pp::detail {

/// See above. It is used for one step after the other.
struct flow_step {
  job of;  ///< its arrays are copies, padded to whole micro-batches
  early_part early;
  int first = 0, next_first = 0;  ///< numbers of its first micro-batch, and of the next step's
  double norm = 0;
  std::atomic<long> waited{0};  ///< of all ranks, in nanoseconds
  long end = 0;                 ///< when it was judged

  [[gnu::cold]] void assemble(pipeline_description const& d) {
    long parameters = 0;
    for (int c = 0; c < d.chunks; ++c) parameters += d.chunk[c].parameter_count;
    report_ = heap_array<double>(2 * parameters + 1);
    early.assemble(d);
    for (int i = 0; i <= d.inputs; ++i)
      data_[i] = heap_array<std::byte>(d.micro_batches * d.bytes_of(i));
  }
  /// Copies the mini-batch of a job.
  void take(pipeline_description const& d, job const& given) {
    of = given;
    of.data = data_place::loaded;
    for (int i = 0; i <= d.inputs; ++i) {
      void const*& from = i < d.inputs ? of.input[i] : of.label;
      if (from == nullptr) continue;
      long const bytes = d.bytes_of(i) / d.samples * of.samples;
      std::byte* const to = data_[i].begin();
      std::memcpy(to, from, std::size_t(bytes));
      std::memset(to + bytes, 0, std::size_t(data_[i].size() - bytes));
      from = to;
    }
    early.find(d, micro_batches(d));
    waited.store(0, std::memory_order_relaxed);
  }
  /// Numbers its micro-batches from `next` on, which becomes the next step's first number. The
  /// holders of a chunk have numbers in turn, so that a step begins with that of all first ones.
  ///
  /// turns: after which all chunks' first holders have one again
  void number(pipeline_description const& d, int turns, int& next) {
    first = next;
    next += micro_batches(d) + turns - 1;
    next -= next % turns;
    next_first = next;
  }
  int micro_batches(pipeline_description const& d) const {
    return (of.samples + d.samples - 1) / d.samples;
  }
  /// Calls use(holder, number) with the last number of each holder, if there are some without a
  /// micro-batch.
  template <class Use>
  void for_each_missing(pipeline_description const& d, Use const& use) const {
    if (first + micro_batches(d) == next_first) return;
    for (int h = 0; h < d.holders(); ++h) {
      chunk_description const& c = d.chunk[d.holder[h].chunk];
      if (int const last = next_first - c.holders + h - c.first_holder; last >= first) use(h, last);
    }
  }
  /// The squares of a chunk: see norms_of.
  double* squares_of(pipeline_description const& d, int chunk) {
    double* at = report_.begin();
    for (int c = 0; c < chunk; ++c) at += 2 * d.chunk[c].parameter_count;
    return at;
  }
  double& loss() { return report_[report_.size() - 1]; }
  double loss() const { return report_[report_.size() - 1]; }
  /// Where a report on the step has what is `bytes` from its start: see for_each_report_stream.
  void* report_at(long bytes) { return reinterpret_cast<char*>(report_.begin()) + bytes; }
  void const* report_at(long bytes) const {
    return reinterpret_cast<char const*>(report_.begin()) + bytes;
  }

  /// Norm and clipping factor, when all ranks have measured.
  ///
  /// law: sums are in parameter order, as parameter_work::judge has them
  gradient_outcome outcome() const {
    double sums[2]{};
    for (long i = 0; i + 1 < report_.size(); ++i) sums[i % 2] += report_[i];
    bool const clamps = of.clip_value > 0;
    return outcome_of(sums[0], sums[clamps], of.gradient_scale, of.clip_norm);
  }
  bool is_sound(gradient_outcome const& o) const {
    return libm::isfinite(o.norm) && libm::isfinite(loss());
  }
  /// Whether an update without clipping was right.
  bool is_as_updated(gradient_outcome const& o) const {
    return is_sound(o) && o.factor == of.gradient_scale;
  }

 private:
  heap_array<double> report_;                   // squares [parameters, 2] of all chunks, loss
  heap_array<std::byte> data_[max_inputs + 1];  // by input, then labels
};

}  // namespace pp::detail
