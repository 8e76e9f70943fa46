// SPDX-License-Identifier: BSL-1.0
//
// The bytes of a rank's bookkeeping on a device, beside the model's values: lists that launches
// over all parameters read, sums of squares, the outcome of a step. The number of bytes is a
// constant, a part of the memory plan.
#pragma once

#include <pipe/backend/cuda/core/tickets.hpp>
#include <pipe/backend/cuda/update/check_values.hpp>
#include <pipe/backend/cuda/core/run_state.hpp>
#include <pipe/backend/cuda/update/coefficients.hpp>
#include <pipe/backend/cuda/update/factored_means.hpp>
#include <pipe/backend/cuda/update/newton_schulz.hpp>
#include <pipe/backend/cuda/update/not_finite.hpp>
#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/backend/cuda/update/step_outcome.hpp>
#include <pipe/backend/cuda/update/whole_tensors.hpp>
#include <pipe/base/bytes.hpp>

namespace pp::cuda {

/// Bytes for `count` items of type Item, rounded up to the alignment of allocations.
template <class Item>
constexpr long bytes_for(long count) {
  return detail::align_up(count * long(sizeof(Item)));
}

/// The number of ranges of a parameter.
template <class Place>
constexpr long ranges_for(Place const& p) {
  bool const changes = p.is_committed() || (p.trained && !p.shared);
  return changes ? flat_ranges::count_of(p.elements()) : 0;
}

/// Bytes of the lists of a chunk: ranges, the first range of each parameter, sums of ranges; ranges
/// of buffers, and their rules.
template <class Chunk>
constexpr long chunk_bookkeeping_bytes(Chunk const& c) {
  long ranges = 0, buffers = 0, buffer_ranges = 0;
  for (auto const& p : c.parameters) {
    ranges += ranges_for(p);
    if (!p.is_committed()) continue;
    ++buffers;
    buffer_ranges += ranges_for(p);
  }
  return bytes_for<flat_range>(ranges) + bytes_for<extent>(c.parameters.count + 1) +
         bytes_for<double>(ranges) + bytes_for<flat_range>(buffer_ranges) +
         bytes_for<buffer_rule>(buffers);
}
/// Bytes of the lists of tensors that are updated whole: the tensors, their ranges, sums, factors
/// and tickets; for factored matrices also tiles and sums of tiles.
template <class Optimizer, class Chunk>
constexpr long whole_update_bytes(Chunk const& c) {
  long bytes = 0;
  if constexpr (custom::two_pass_optimizer<Optimizer>) {
    long ranges = 0, tensors = 0, tiles = 0, sums = 0, means = 0;
    for (auto const& u : c.updates) {
      if (!u.whole) continue;
      ++tensors;
      ranges += flat_ranges::count_of(u.shape.elements());
      if constexpr (detail::factored_optimizer<Optimizer>)
        if (Optimizer::is_factored(u.shape.kind)) {
          auto const f = factored_tensor::of(u.shape.rows, u.shape.columns, 0, 0);
          tiles += f.tiles();
          sums += f.sums(u.shape.rows, u.shape.columns);
          means += f.means;
        }
    }
    bytes = bytes_for<updated_tensor>(tensors) + bytes_for<flat_range>(ranges) +
            bytes_for<double>(ranges * Optimizer::sums) + bytes_for<double>(tensors) +
            bytes_for<unsigned>(tensors);
    if constexpr (detail::factored_optimizer<Optimizer>)
      bytes += bytes_for<factored_tensor>(tensors) + bytes_for<flat_range>(tiles) +
               bytes_for<flat_range>(means) + bytes_for<float>(sums) + bytes_for<double>(means) +
               bytes_for<float>(tensors);
  }
  return bytes;
}
/// Bytes of the lists of matrices that a Newton-Schulz iteration updates: the matrices, tiles of x
/// and of s, sums, factors and tickets.
template <class Optimizer, class Chunk>
constexpr long spectral_update_bytes(Chunk const& c) {
  long matrices = 0, tiles = 0, squares = 0;
  if constexpr (detail::spectral_optimizer<Optimizer>)
    for (auto const& u : c.updates) {
      if (!u.whole) continue;
      ++matrices;
      tiles += spectral_matrix::tiles_of(u.shape.rows, u.shape.columns);
      squares += spectral_matrix::squares_of(u.shape.rows, u.shape.columns);
    }
  return matrices == 0 ? 0
                       : bytes_for<spectral_matrix>(matrices) + bytes_for<flat_range>(tiles) +
                             bytes_for<flat_range>(squares) + bytes_for<double>(tiles) +
                             bytes_for<float>(matrices) + bytes_for<unsigned>(matrices);
}
/// Elements of workspace for the iterations of a chunk: of the batch that needs most.
template <class Optimizer, class Chunk>
constexpr long spectral_workspace([[maybe_unused]] Chunk const& c) {
  if constexpr (detail::spectral_optimizer<Optimizer>) {
    spectral_batches<Optimizer> batches;
    for (auto const& u : c.updates)
      if (u.whole) batches.next(u.shape.rows, u.shape.columns);
    return batches.most;
  }
  return 0;
}
/// The same for a rank: its chunks are updated one after the other, and share the workspace.
template <class Optimizer, class Chunk>
constexpr long spectral_workspace_of_rank(Chunk const* chunks, int chunk_count, int rank) {
  long most = 0;
  for (int c = 0; c < chunk_count; ++c)
    if (chunks[c].rank == rank && spectral_workspace<Optimizer>(chunks[c]) > most)
      most = spectral_workspace<Optimizer>(chunks[c]);
  return most;
}
/// Bytes of a run_state and of the coefficients of all chunks behind it.
template <class Chunk>
constexpr long run_bytes(Chunk const* chunks, int chunk_count, long of_coefficients) {
  long ranges = 0;
  for (int c = 0; c < chunk_count; ++c) ranges += chunks[c].updates.count;
  return bytes_for<run_state>(1) + ranges * of_coefficients;
}
/// Bytes of the result of a search of a device's memory: for numbers that are not finite, or for
/// values of a mini-batch that are out of range.
inline constexpr long search_bytes =
    check_values_kernel::found_bytes > long(sizeof(int)) * find_not_finite_kernel::search_blocks
        ? check_values_kernel::found_bytes
        : long(sizeof(int)) * find_not_finite_kernel::search_blocks;
/// Bytes of what the ranks of a device share, on the first rank: two sums of squares per parameter,
/// the outcome, the loss scale, the numbers of random streams, and the result of a search.
constexpr long shared_bookkeeping_bytes(int parameters, int streams) {
  return 2 * bytes_for<double>(parameters) + bytes_for<step_outcome>(1) +
         bytes_for<loss_scaling>(1) + bytes_for<int>(streams) + bytes_for<char>(search_bytes);
}

/// Bytes of all bookkeeping of a rank: its tickets, its lists and, on the first rank of a device,
/// what the ranks share.
template <class Optimizer, class Chunk>
constexpr long bookkeeping_bytes(Chunk const* chunks, int chunk_count, int rank, bool is_first,
                                 int parameters, int streams) {
  long bytes = bytes_for<unsigned>(most_tickets);
  if (is_first)
    bytes += shared_bookkeeping_bytes(parameters, streams) +
             bytes_for<char>(run_bytes(chunks, chunk_count, coefficient_bytes<Optimizer>()));
  for (int c = 0; c < chunk_count; ++c)
    if (chunks[c].rank == rank)
      bytes += chunk_bookkeeping_bytes(chunks[c]) + whole_update_bytes<Optimizer>(chunks[c]) +
               spectral_update_bytes<Optimizer>(chunks[c]);
  return bytes + bytes_for<float>(spectral_workspace_of_rank<Optimizer>(chunks, chunk_count, rank));
}

}  // namespace pp::cuda
