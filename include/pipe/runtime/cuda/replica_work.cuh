// SPDX-License-Identifier: BSL-1.0
//
// What the replicas of a pipeline add up on GPUs: the gradients of each chunk, behind the last
// action that adds to them, while other chunks compute; and at the end of a run the loss.
#pragma once

#include <cstddef>

#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/backend/cuda/update/update.hpp>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/replica_sums.cuh>
#include <pipe/runtime/leaves.hpp>

namespace pp::detail {

/// The sums of compiled pipeline P over replicas.
///
/// law:   work is enqueued only, on the stream of all exchanges
/// needs: the executor outlives this object
template <class P>
class cuda_replica_work {
 public:
  template <class Add>
  using over_flat = cuda::flat_kernel<Add>;
  using kernels = cuda::kernel_list<over_flat<cuda::add_elements>, over_flat<cuda::add_losses>>;
  static_assert(cuda::fit_every_device(kernels{}));

  [[gnu::cold]] explicit cuda_replica_work(cuda_executor& executor)
      : executor_(executor), d_(executor.description()),
        sums_(executor.copies().processes(), executor.streams().local()) {
    executor_.for_each_device([](int) { cuda::prepare_kernels(kernels{}); });
  }

  /// Whether a job's gradients are added up.
  static bool exchanges(job const& j) { return j.replicas > 1 && is_last_leaf(j); }

  /// Adds a chunk's gradients, and its sums of buffers, to those of the other replicas, once all
  /// work so far on its rank is done. Nothing more is added to them in job j.
  void complete(int chunk, job const& j) {
    chunk_description const& c = d_.chunk[chunk];
    if (!exchanges(j) || c.summed_bytes() == 0) return;
    float* const gradients = executor_.at<float>(c.rank, c.gradients);
    if (j.samples == 0)  // nothing has overwritten those of the step before
      cuda::check(cudaMemsetAsync(gradients, 0, std::size_t(c.summed_bytes()),
                                  executor_.stream_of(c.rank)),
                  "clearing of gradients");
    add_up<cuda::add_elements>(c.rank, gradients, c.summed_bytes() / long(sizeof(float)));
  }
  /// Makes the first of the losses that of the mini-batch, in the processes of the last chunk, and
  /// orders all later work after the sums.
  void finish(job const& j) {
    if (!exchanges(j)) return;
    int const last = d_.chunk[d_.chunks - 1].rank;
    if (double* const losses = executor_.losses()) {
      cuda::launch_body<cuda::add_up_kernel>({losses, d_.micro_batches, nullptr, 1, losses},
                                             executor_.stream_of(last));
      add_up<cuda::add_losses>(last, losses, 1);
    }
    for (int r = executor_.root(); r < executor_.streams().local().end_rank(); ++r)
      executor_.copies().await(r);
  }

 private:
  /// Adds data of a rank to that of the other replicas, by kernels of Add.
  template <class Add, class T>
  void add_up(int rank, T* data, long elements) {
    rank_description const& r = d_.rank[rank];
    sums_.add_up<T>(data, elements, executor_.memory_of(rank) + r.received_leaves,
                    r.received_leaf_bytes, executor_.copies().exchanges_behind(rank),
                    [](long n, T* to, T const* from, cudaStream_t on) {
                      cuda::launch_body<over_flat<Add>>(
                          {cuda::flat_ranges::over(n), Add{to, from}}, on);
                    });
  }

  cuda_executor& executor_;
  pipeline_description const& d_;
  cuda::replica_sums sums_;
};

/// Of a pipeline that has no replicas.
struct no_replica_work {
  explicit no_replica_work(cuda_executor&) {}
  static bool exchanges(job const&) { return false; }
  void complete(int, job const&) {}
  void finish(job const&) {}
};

}  // namespace pp::detail
