// SPDX-License-Identifier: BSL-1.0
//
// The place of the optimizer's state: the arenas of the ranks, or page-locked memory of the host,
// whose addresses are valid in kernels of every device. An update kernel reads and writes the state
// in place, so that both directions of the link to the host are busy at once.
#pragma once

#include <cstring>

#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/rank_updates.cuh>
#include <pipe/runtime/cuda/resources.cuh>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// The optimizer's state of compiled pipeline P, in the arenas of the ranks.
///
/// needs: the executor and the updates outlive this object
template <class P, bool = P::offload::is_on>
class cuda_optimizer_states {
 public:
  cuda_optimizer_states(cuda_executor const& executor, cuda_rank_updates<P> const& own)
      : executor_(executor), own_(own) {}
  /// The state of a chunk of this process, as a kernel on its rank's device sees it.
  float* of(chunk_description const& c) const {
    return executor_.at<float>(c.rank, own_.state_of(c));
  }

 private:
  cuda_executor const& executor_;
  cuda_rank_updates<P> const& own_;
};

/// The optimizer's state in the host's memory (OffloadState): one allocation for each rank, zero at
/// first.
///
/// throws: pp::error with the rank and the bytes, if that much memory cannot be page-locked
template <class P>
class cuda_optimizer_states<P, true> {
 public:
  [[gnu::cold]] cuda_optimizer_states(cuda_executor& executor, cuda_rank_updates<P> const& own)
      : own_(own), memory_(executor.description().ranks) {
    pipeline_description const& d = executor.description();
    local_devices const& local = executor.streams().local();
    for (int r = local.first_rank(); r < local.end_rank(); ++r) {
      executor.streams().make_current(r);
      allocate(d, r);
    }
  }
  float* of(chunk_description const& c) const {
    return reinterpret_cast<float*>(memory_[c.rank].data() + own_.state_of(c));
  }

 private:
  void allocate(pipeline_description const& d, int rank) {
    long const bytes = own_.host_bytes(rank);
    try {
      memory_[rank] = cuda::pinned_buffer(bytes);
    } catch (error const& e) {
      long all = 0;
      for (int r = 0; r < d.ranks; ++r) all += d.rank[r].host_bytes;
      throw_error<error>({"rank ", rank, ": no page-locked memory on the host for ", bytes,
                          " bytes of the optimizer's state, of ", all,
                          " that the plan needs in all: ", e.what()});
    }
    if (bytes > 0) std::memset(memory_[rank].data(), 0, std::size_t(bytes));
  }

  cuda_rank_updates<P> const& own_;
  heap_array<cuda::pinned_buffer> memory_;  // by rank
};

}  // namespace pp::detail
