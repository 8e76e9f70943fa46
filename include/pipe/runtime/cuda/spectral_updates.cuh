// SPDX-License-Identifier: BSL-1.0
//
// The updates of matrices by a Newton-Schulz iteration on a GPU (Muon): batches of a stage's
// matrices, the work lists of each batch's launches, made once, and the launches.
#pragma once

#include <type_traits>
#include <vector>

#include <pipe/backend/cuda/update/bookkeeping.hpp>
#include <pipe/backend/cuda/update/newton_schulz.hpp>
#include <pipe/runtime/cuda/executor.cuh>
#include <pipe/runtime/cuda/kernel_list.cuh>
#include <pipe/runtime/cuda/optimizer_states.cuh>
#include <pipe/runtime/cuda/rank_updates.cuh>
#include <pipe/runtime/description.hpp>

namespace pp::detail {

/// The format of products that are no ops of compiled pipeline P, such as an optimizer's.
template <class P>
constexpr cuda::product_format product_format_of() {
  return !P::passes::has_copies &&
                 cuda::product_of<cuda::source_of<P>>() == cuda::product_format::fp32
             ? cuda::product_format::fp32
             : cuda::product_format::tf32;
}

/// The updates of matrices in compiled pipeline P. Products have the precision of the pipeline's
/// own products, and tf32 where those are of 16-bit numbers.
///
/// law:   work is enqueued only; at most as many bytes of bookkeeping are taken as
///        spectral_update_bytes and spectral_workspace_of_rank say
/// needs: the arguments of the constructor outlive this object
template <class P>
class cuda_spectral_updates {
  using optimizer = typename P::optimizer;
  using value = typename P::value;
  static constexpr cuda::product_format format = product_format_of<P>();
  using average = cuda::average_matrices_kernel<optimizer>;
  using inner = cuda::spectral_product_kernel<optimizer, format, false>;
  using last = cuda::spectral_product_kernel<optimizer, format, true>;
  using move =
      cuda::move_matrices_kernel<optimizer, std::conditional_t<P::passes::has_copies, value, void>>;

 public:
  using kernels = cuda::kernel_list<average, inner, last, move>;

  /// Takes the workspace of each rank, which the rank's chunks share, and makes the lists of all
  /// chunks.
  cuda_spectral_updates(cuda_executor& executor, optimizer const& o,
                        cuda_rank_updates<P> const& own, cuda_optimizer_states<P> const& states)
      : executor_(executor), own_(own), states_(states), d_(executor.description()), optimizer_(o),
        workspace_(std::size_t(d_.ranks)) {
    local_devices const& local = executor.streams().local();
    for (int r = local.first_rank(); r < local.end_rank(); ++r)
      workspace_[std::size_t(r)] = executor.kept<float>(
          r, nullptr, cuda::spectral_workspace_of_rank<optimizer>(d_.chunk, d_.chunks, r));
    int coefficients = 0;
    for (int c = 0; c < d_.chunks; ++c) {
      chunks_.push_back(executor.is_local(c) ? batches_of(c, coefficients) : std::vector<batch>{});
      coefficients += d_.chunk[c].updates.count;
    }
  }

  /// Enqueues the step on a chunk's matrices: for each batch the momentum, the iterations of three
  /// products each, and the move of the parameters.
  void update(int chunk) const {
    chunk_description const& c = d_.chunk[chunk];
    cudaStream_t const on = executor_.stream_of(c.rank);
    int const steps = optimizer_.newton_schulz_steps;
    for (batch const& b : chunks_[std::size_t(chunk)]) {
      cuda::launch_body<average>({b.tiles, b.of, b.sums, b.tickets}, on);
      // x and its successor change places after each iteration: is_swapped tells a launch which is
      // which.
      for (int i = 0; i < steps; ++i) {
        bool const is_first = i == 0, is_swapped = i % 2 == 1;
        for (auto what : {cuda::spectral_product::square_x, cuda::spectral_product::polynomial})
          cuda::launch_body<inner>({b.squares, b.of, what, is_first, is_swapped}, on);
        cuda::launch_body<last>({b.tiles, b.of, cuda::spectral_product::next, is_first, is_swapped},
                                on);
      }
      typename move::arguments moves{b.tiles, b.of, steps > 0, steps % 2 == 1, nullptr};
      if constexpr (P::passes::has_copies) moves.copy = executor_.at<value>(c.rank, c.copies);
      cuda::launch_body<move>(moves, on);
    }
  }

 private:
  /// Matrices that are updated together. Lists are in device memory.
  struct batch {
    cuda::flat_ranges tiles, squares;  // of x, and of x^T x
    cuda::spectral_memory<optimizer> of;
    // The sums of the squares of x, by tile, and the tickets by which the last block of a matrix
    // knows that it adds them up.
    double* sums = nullptr;
    unsigned* tickets = nullptr;
  };

  /// The batches of a chunk, whose lists lie one behind the other. Matrices are divided into
  /// batches as if this replica updated all of them, so that the planned workspace is enough.
  std::vector<batch> batches_of(int chunk, int coefficients) {
    chunk_description const& c = d_.chunk[chunk];
    std::vector<cuda::spectral_matrix> matrices;
    std::vector<cuda::flat_range> tiles, squares;
    // The numbers of the first tiles of each batch; one item more, the end.
    struct ends {
      long tiles, squares;
    };
    std::vector<ends> begin;
    cuda::spectral_batches<optimizer> batches;
    int next = 0;
    bool begins = false;
    own_.for_each(chunk, [&](update_range const& u, int i) {
      if (!u.whole) return;
      for (; next <= i; ++next)
        if (custom::tensor_shape const& s = c.updates[next].shape; c.updates[next].whole)
          begins = batches.next(s.rows, s.columns) || begins;
      if (begins) begin.push_back({long(tiles.size()), long(squares.size())});
      begins = false;
      long const rows = u.shape.rows, columns = u.shape.columns;
      auto m = cuda::spectral_matrix::of(
          rows, columns, batches.used - cuda::spectral_matrix::workspace(rows, columns));
      m.begin = u.begin, m.state = u.state;
      m.first_tile = long(tiles.size()) - begin.back().tiles;
      m.coefficients = coefficients + i;
      cuda::list_tiles(
          m, int(matrices.size()), [&](cuda::flat_range const& x) { tiles.push_back(x); },
          [&](cuda::flat_range const& x) { squares.push_back(x); });
      matrices.push_back(m);
    });
    // A stage may have no matrix at all: biases and scales are updated by element.
    if (matrices.empty()) return {};
    begin.push_back({long(tiles.size()), long(squares.size())});
    long const count = long(matrices.size());
    cuda::spectral_memory<optimizer> of;
    of.matrices = executor_.kept(c.rank, matrices.data(), count);
    auto const* const all_tiles = executor_.kept(c.rank, tiles.data(), long(tiles.size()));
    auto const* const all_squares = executor_.kept(c.rank, squares.data(), long(squares.size()));
    auto* const sums = executor_.kept<double>(c.rank, nullptr, long(tiles.size()));
    of.factors = executor_.kept<float>(c.rank, nullptr, count);
    auto* const tickets = executor_.kept<unsigned>(c.rank, nullptr, count);
    of.sets = executor_.coefficients<unsigned char>(c.rank);
    of.weights = executor_.at<float>(c.rank, c.values);
    of.gradients = executor_.at<float>(c.rank, c.gradients);
    of.states = states_.of(c);
    of.workspace = workspace_[std::size_t(c.rank)];
    of.judged = executor_.outcome(c.rank);
    // Each batch has its own part of the lists of tiles; matrices are numbered through the chunk.
    std::vector<batch> all;
    for (std::size_t b = 0; b + 1 < begin.size(); ++b) {
      ends const from = begin[b], to = begin[b + 1];
      all.push_back({{all_tiles + from.tiles, to.tiles - from.tiles, 0},
                     {all_squares + from.squares, to.squares - from.squares, 0},
                     of,
                     sums + from.tiles,
                     tickets});
    }
    return all;
  }

  cuda_executor& executor_;
  cuda_rank_updates<P> const& own_;
  cuda_optimizer_states<P> const& states_;
  pipeline_description const& d_;
  optimizer const& optimizer_;
  std::vector<float*> workspace_;           // by rank
  std::vector<std::vector<batch>> chunks_;  // by chunk
};

}  // namespace pp::detail
