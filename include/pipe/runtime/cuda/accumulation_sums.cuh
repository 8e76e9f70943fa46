// SPDX-License-Identifier: BSL-1.0
//
// The accumulations of a mini-batch on GPUs: gradients and losses of a run are joined with the
// partial sums of the runs before it, rank by rank, each on the rank's own stream.
#pragma once

#include <vector>

#include <pipe/backend/cuda/update/accumulation_sums.hpp>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/job.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::detail {

/// The accumulation sums of compiled pipeline P. If a mini-batch never has several accumulations,
/// there are no sums and no kernels.
template <class P, bool MayAccumulate = P::may_accumulate>
class cuda_accumulation_sums {
 public:
  explicit cuda_accumulation_sums(cuda_executor const&) {}
  void begin() const {}
  void add(job const&) const {}
  void join(chunk_description const&, long, long, job const&) const {}
  void run_ahead() const {}
};

/// The accumulation sums of a pipeline whose mini-batches may have several accumulations.
///
/// law: work is enqueued only; the order of all sums is that of join_next
template <class P>
class cuda_accumulation_sums<P, true> {
 public:
  /// needs: the executor outlives this object
  [[gnu::cold]] explicit cuda_accumulation_sums(cuda_executor& executor)
      : executor_(executor), d_(executor.description()) {
    executor_.for_each_device([&](int) {
      cuda::prepare_kernels(kernels{});
      begun_.emplace_back();
    });
  }

  /// Must be called right after the upload of a run's numbers is enqueued.
  void begin() {
    cuda::event const* next = begun_.data();
    executor_.for_each_device([&](int first) {
      cuda::check(cudaEventRecord(*next++, executor_.stream_of(first)), "record of an event");
    });
  }

  /// Joins the gradients and the losses of a run that is one of several accumulations. Gradients
  /// that replicas add up have been joined before, bucket by bucket.
  ///
  /// post: after the last accumulation, the gradients in the place of a run's gradients, and the
  ///       first value of each loss, are the sums over all accumulations of this process
  void add(job const& j) {
    if (!has_accumulations(j)) return;
    if (j.what == job::kind::train && !exchanges(j))
      for (int c = 0; c < d_.chunks; ++c)
        if (executor_.is_local(c)) join(d_.chunk[c], 0, d_.chunk[c].summed_bytes(), j);
    if (!executor_.is_local(d_.chunks - 1)) return;
    double* const levels = executor_.losses() + d_.losses * d_.micro_batches;
    for (int loss = 0; loss < d_.losses; ++loss)
      cuda::launch_body<cuda::join_losses_kernel>(
          {executor_.losses() + loss * d_.micro_batches, d_.micro_batches,
           levels + loss * levels_of(d_.accumulations), levels_before(j.part.accumulation),
           !is_last_accumulation(j)},
          executor_.stream_of(d_.chunk[d_.chunks - 1].rank));
  }

  /// Replaces the wait for the end of a run that is not the last. Orders the next run behind this
  /// run, and waits until this run begins on the devices: from then on the host may write the
  /// numbers of the next run.
  void run_ahead() {
    executor_.streams().meet();
    for (cuda::event const& begun : begun_) begun.wait();
  }

  /// Joins a part of a chunk's gradients, and of the buffers' sums behind them, with the partial
  /// sums.
  ///
  /// units: bytes from the start of the gradients
  void join(chunk_description const& c, long begin, long end, job const& j) {
    constexpr long width = sizeof(float);
    rank_description const& rank = d_.rank[c.rank];
    float* const own = executor_.at<float>(c.rank, c.gradients + begin);
    float* const levels = executor_.at<float>(c.rank, rank.fixed_bytes + c.in_level + begin);
    long const apart = rank.level_bytes / width, count = (end - begin) / width;
    int const joined = levels_before(j.part.accumulation);
    bool const is_there =
        j.batch.samples >
        0;  // else no launch has overwritten the gradients of the accumulation before
    if (count == 0 || (is_last_accumulation(j) && joined == 0 && is_there)) return;
    cuda::join_elements const sum{is_last_accumulation(j) ? own : levels + joined * apart,
                                  is_there ? own : nullptr, levels, apart, joined};
    cuda::launch_body<join_kernel>({cuda::flat_ranges::over(count), sum},
                                   executor_.stream_of(c.rank));
  }

 private:
  using join_kernel = cuda::flat_kernel<cuda::join_elements>;
  using kernels = cuda::kernel_list<cuda::join_losses_kernel, join_kernel>;
  static_assert(cuda::fit_every_device(kernels{}));

  cuda_executor& executor_;
  pipeline_description const& d_;
  std::vector<cuda::event> begun_;  // by device
};

}  // namespace pp::detail
