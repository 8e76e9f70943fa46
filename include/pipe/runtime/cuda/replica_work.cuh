// SPDX-License-Identifier: BSL-1.0
//
// The sums over replicas in a run of a pipeline on GPUs: of each chunk's gradients, bucket by
// bucket behind the launches that complete the buckets, and of the losses, at the end.
#pragma once

#include <climits>
#include <vector>

#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/backend/cuda/update/update.hpp>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/processes.cuh>
#include <pipe/runtime/cuda/replica_sum.cuh>
#include <pipe/runtime/gradient_buckets.hpp>
#include <pipe/runtime/sum_tree.hpp>

namespace pp::detail {

/// The sums over replicas of compiled pipeline P. In one process there are no sums and no kernels.
template <class P, bool MayHaveReplicas = cuda_processes<P>::are_several>
class cuda_replica_work {
 public:
  explicit cuda_replica_work(cuda_executor const&) {}
  template <class Join>
  void add_up(int, bool, int, Join const&) const {}
  void finish(job const&) const {}
};

/// The sums over replicas of a pipeline whose processes may be several replicas.
///
/// law: work is enqueued only, on the stream of all exchanges
template <class P>
class cuda_replica_work<P, true> {
 public:
  /// needs: the executor outlives this object
  [[gnu::cold]] explicit cuda_replica_work(cuda_executor& executor)
      : executor_(executor), d_(executor.description()),
        sums_(executor.copies().processes(), executor.streams().local()) {
    executor_.for_each_device([](int) { cuda::prepare_kernels(kernels{}); });
    buckets_.resize(std::size_t(d_.chunks));
    local_devices const& local = executor.streams().local();
    for (int r = local.first_rank(); r < local.end_rank(); ++r)
      for (gradient_bucket const& p : gradient_buckets(d_, sizeof(float), r))
        buckets_[std::size_t(p.chunk)].all.push_back(p);
  }

  /// Adds up the buckets of a chunk that have become complete (see cuda_executor::enqueue) over the
  /// replicas, behind all work so far on the chunk's rank. join(bucket) joins a bucket with the
  /// partial sums of earlier accumulations before.
  ///
  /// law: the order of buckets is the same in every run
  template <class Join>
  void add_up(int chunk, bool drops, int launch, Join const& join) {
    buckets& mine = buckets_[std::size_t(chunk)];
    chunk_description const& c = d_.chunk[chunk];
    for (; mine.next < mine.all.size(); ++mine.next) {
      gradient_bucket const& p = mine.all[mine.next];
      if (p.launch[drops] > launch) return;
      join(p);
      add_up(c.rank, executor_.at<float>(c.rank, c.gradients + p.begin),
             (p.end - p.begin) / long(sizeof(float)));
    }
    if (launch == INT_MAX) mine.next = 0;
  }
  /// Adds up each loss of a run, in place of the first of its values, if replicas add up the run;
  /// then orders all later work after all sums.
  void finish(job const& j) {
    if (!exchanges(j)) return;
    if (double* const losses = executor_.losses())
      for (int loss = 0; loss < d_.losses; ++loss)
        add_up(d_.chunk[d_.chunks - 1].rank, losses + loss * d_.micro_batches, 1);
    for (int r = executor_.root(); r < executor_.streams().local().end_rank(); ++r)
      executor_.copies().await(r);
  }

 private:
  template <class T>
  using adding = cuda::flat_kernel<cuda::add_elements<T>>;
  using kernels = cuda::kernel_list<adding<float>, adding<double>>;
  static_assert(cuda::fit_every_device(kernels{}));

  /// The buckets of a chunk of this process, and the number of the next bucket to add up in this
  /// run.
  struct buckets {
    std::vector<gradient_bucket> all;
    std::size_t next = 0;
  };

  /// Adds up data of a rank over the replicas.
  template <class T>
  void add_up(int rank, T* data, long elements) {
    rank_description const& r = d_.rank[rank];
    sums_.add_up<T>(data, elements, executor_.memory_of(rank) + r.replica_room,
                    r.replica_room_bytes, executor_.copies().exchanges_behind(rank),
                    [](long n, T* to, T const* from, cudaStream_t on) {
                      cuda::launch_body<adding<T>>({cuda::flat_ranges::over(n), {to, from}}, on);
                    });
  }

  cuda_executor& executor_;
  pipeline_description const& d_;
  cuda::replica_sum sums_;
  std::vector<buckets> buckets_;  // by chunk
};

}  // namespace pp::detail
