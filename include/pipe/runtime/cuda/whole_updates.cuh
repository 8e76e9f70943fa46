// SPDX-License-Identifier: BSL-1.0
//
// The updates of whole tensors on a GPU: the work lists of each stage's launches, made once, and
// the launches.
#pragma once

#include <type_traits>
#include <vector>

#include <pipe/backend/cuda/update/factored_means.hpp>
#include <pipe/backend/cuda/update/whole_tensors.hpp>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/optimizer_states.cuh>
#include <pipe/runtime/cuda/rank_updates.cuh>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// The updates of whole tensors in compiled pipeline P; none if its optimizer does not update whole
/// tensors.
///
/// law:   work is enqueued only; at most as many bytes of bookkeeping are taken as
///        whole_update_bytes says
/// needs: executor, updates and states outlive this object
template <class P, bool = custom::two_pass_optimizer<typename P::optimizer>>
class cuda_whole_updates {
 public:
  using kernels = cuda::kernel_list<>;
  cuda_whole_updates(cuda_executor&, typename P::optimizer const&, cuda_rank_updates<P> const&,
                     cuda_optimizer_states<P> const&) {}
  void update(int) const {}
};

/// The updates of an optimizer of whole tensors: two or four launches for each chunk, on the stream
/// of its rank.
template <class P>
class cuda_whole_updates<P, true> {
  using optimizer = typename P::optimizer;
  using value = typename P::value;
  using gather = cuda::gather_tensors_kernel<optimizer>;
  using move =
      cuda::move_tensors<optimizer, std::conditional_t<P::passes::has_copies, value, void>>;

 public:
  static constexpr bool factors = factored_optimizer<optimizer>;
  using kernels = std::conditional_t<
      factors,
      cuda::kernel_list<cuda::sum_tiles_kernel<optimizer>, cuda::renew_means_kernel<optimizer>,
                        gather, cuda::flat_kernel<move>>,
      cuda::kernel_list<gather, cuda::flat_kernel<move>>>;

  /// Makes the lists of all chunks.
  cuda_whole_updates(cuda_executor& executor, optimizer const&, cuda_rank_updates<P> const& own,
                     cuda_optimizer_states<P> const& states)
      : executor_(executor), own_(own), states_(states), d_(executor.description()) {
    int coefficients = 0;
    for (int c = 0; c < d_.chunks; ++c) {
      lists_.push_back(executor.is_local(c) ? lists_of(c, coefficients) : lists{});
      lists_.back().of.judged = executor.outcome(d_.chunk[c].rank);
      coefficients += d_.chunk[c].updates.count;
    }
  }

  /// Enqueues the step on a chunk's whole tensors. An optimizer that keeps averages of rows and
  /// columns has two more launches, before the two of every such optimizer.
  void update(int chunk) const {
    chunk_description const& c = d_.chunk[chunk];
    lists const& l = lists_[std::size_t(chunk)];
    cudaStream_t const on = executor_.stream_of(c.rank);
    if constexpr (factors) {
      cuda::launch_body<cuda::sum_tiles_kernel<optimizer>>(
          {l.tiles, l.of, l.factored, l.partial_sums}, on);
      cuda::launch_body<cuda::renew_means_kernel<optimizer>>(
          {l.means, l.of, l.factored, l.partial_sums, l.totals, l.tickets}, on);
    }
    cuda::launch_body<gather>({l.ranges, l.of, l.sums, l.tickets}, on);
    move moves{l.of};
    if constexpr (P::passes::has_copies) moves.copy = executor_.at<value>(c.rank, c.copies);
    cuda::launch_body<cuda::flat_kernel<move>>({l.ranges, moves}, on);
  }

 private:
  /// The work lists of a chunk, in device memory.
  struct lists {
    cuda::flat_ranges ranges;
    cuda::tensor_memory<optimizer> of;
    double* sums = nullptr;
    unsigned* tickets = nullptr;
    // For matrices whose averages are kept.
    cuda::flat_ranges tiles, means;
    cuda::factored_tensor const* factored = nullptr;
    float* partial_sums = nullptr;
    double* totals = nullptr;
  };

  /// A list of ranges in the rank's bookkeeping.
  cuda::flat_ranges kept_ranges(chunk_description const& c,
                                std::vector<cuda::flat_range> const& all) {
    long const count = long(all.size());
    return {executor_.kept(c.rank, all.data(), count), count, 0};
  }
  /// Makes the lists of a chunk, whose first range has coefficients number `coefficients`.
  ///
  /// law: the lists lie in bookkeeping in the order in which whole_update_bytes counts them
  lists lists_of(int chunk, int coefficients) {
    chunk_description const& c = d_.chunk[chunk];
    std::vector<cuda::updated_tensor> tensors;
    std::vector<cuda::flat_range> ranges;
    own_.for_each(chunk, [&](update_range const& u, int i) {
      if (!u.whole) return;
      cuda::updated_tensor t{u.begin, u.state, u.shape.rows, u.shape.columns};
      t.coefficients = coefficients + i;
      if constexpr (factors) t.is_factored = optimizer::is_factored(u.shape.kind);
      cuda::cut_tensor(t, int(tensors.size()), cuda::extent(ranges.size()),
                       [&](cuda::flat_range const& x) { ranges.push_back(x); });
      tensors.push_back(t);
    });
    long const count = long(tensors.size()), range_count = long(ranges.size());
    lists l;
    l.of.tensors = executor_.kept(c.rank, tensors.data(), count);
    l.ranges = kept_ranges(c, ranges);
    l.sums = executor_.kept<double>(c.rank, nullptr, range_count * optimizer::sums);
    l.of.factors = executor_.kept<double>(c.rank, nullptr, count);
    l.tickets = executor_.kept<unsigned>(c.rank, nullptr, count);
    l.of.sets = executor_.coefficients<unsigned char>(c.rank);
    l.of.weights = executor_.at<float>(c.rank, c.values);
    l.of.gradients = executor_.at<float>(c.rank, c.gradients);
    l.of.states = states_.of(c);
    if constexpr (factors) list_matrices(c, tensors, l);
    return l;
  }
  /// Makes the lists of a chunk's matrices whose averages are kept.
  void list_matrices(chunk_description const& c, std::vector<cuda::updated_tensor> const& tensors,
                     lists& l) {
    std::vector<cuda::factored_tensor> factored(tensors.size());
    std::vector<cuda::flat_range> tiles, means;
    auto const append_tile = [&](cuda::flat_range const& x) { tiles.push_back(x); };
    auto const append_means = [&](cuda::flat_range const& x) { means.push_back(x); };
    long const sums = cuda::list_matrices(tensors.data(), int(tensors.size()), factored.data(),
                                          append_tile, append_means);
    l.factored = executor_.kept(c.rank, factored.data(), long(factored.size()));
    l.tiles = kept_ranges(c, tiles);
    l.means = kept_ranges(c, means);
    l.partial_sums = executor_.kept<float>(c.rank, nullptr, sums);
    l.totals = executor_.kept<double>(c.rank, nullptr, long(means.size()));
    l.of.row_factors = executor_.kept<float>(c.rank, nullptr, long(tensors.size()));
  }

  cuda_executor& executor_;
  cuda_rank_updates<P> const& own_;
  cuda_optimizer_states<P> const& states_;
  pipeline_description const& d_;
  std::vector<lists> lists_;  // by chunk
};

}  // namespace pp::detail
