// SPDX-License-Identifier: BSL-1.0
//
// The placement of chunks on ranks. All other code of this folder calls these few functions, so a
// new placement is one more case in each, or a type with functions of its own (stage_ranks.hpp).
// The rank of a chunk may depend on the micro-batch: with two replicas of the weights, even
// micro-batches flow down the ranks and odd ones flow up. A rank with a chunk is a holder of the
// chunk.
#pragma once

#include <concepts>

namespace pp {

namespace schedules {

/// The rank of each chunk, with P ranks counted from 0.
enum class placement : unsigned char {
  /// Chunk c on rank c; P chunks.
  straight,
  /// Chunk c on rank c mod P. Narayanan et al., 2021: interleaved.
  loop,
  /// Down the ranks, back up, down again: a V with two chunks per rank, waves (Hanayo) with more.
  vee,
  /// P chunks, each twice: on rank c for even micro-batches, on rank P-1-c for odd ones. Chimera.
  bidirectional
};

/// The number of copies of each chunk's weights.
constexpr int replicas(placement where) { return where == placement::bidirectional ? 2 : 1; }
/// The number of ranks that hold one chunk: the n-th runs micro-batches n, n + replicas, ...
constexpr int replicas(placement where, int) { return where == placement::bidirectional ? 2 : 1; }

}  // namespace schedules

namespace detail {

using namespace schedules;

/// The replica of a micro-batch, 0 .. replicas - 1.
constexpr int replica_of(placement where, int micro_batch) {
  return where == placement::bidirectional ? micro_batch % 2 : 0;
}

/// The number of holders of all chunks, and the number of the holder that runs a chunk for a
/// micro-batch. The holders of a chunk have consecutive numbers.
constexpr int holders(placement where, int chunks) { return chunks * replicas(where); }
constexpr int holder_of(placement where, int chunk, int micro_batch) {
  return where == placement::bidirectional ? 2 * chunk + micro_batch % 2 : chunk;
}

/// Whether a placement holds these numbers of ranks and chunks, and which numbers it holds, in
/// words.
constexpr bool fits(placement where, int ranks, int chunks) {
  bool const one_chunk = where == placement::straight || where == placement::bidirectional;
  return one_chunk ? chunks == ranks : chunks % ranks == 0;
}
constexpr char const* what_fits(placement where) {
  bool const one_chunk = where == placement::straight || where == placement::bidirectional;
  return one_chunk ? "as many chunks as ranks" : "a multiple of the ranks as chunks";
}

/// The number of micro-batches after which the same two holders meet at a boundary again, between
/// chunks that have `before` and `after` holders.
constexpr int pairs_of(int before, int after) {
  int pairs = before;
  while (pairs % after != 0) pairs += before;
  return pairs;
}

/// Whether the holders of a chunk add to one gradient, in the order of the micro-batches.
template <class Where>
inline constexpr bool adds_in_order = false;

}  // namespace detail

namespace schedules {

/// The number of chunks of a model when each of `ranks` ranks holds `chunks_per_rank`, replicas
/// counted.
constexpr int chunks_for(placement where, int ranks, int chunks_per_rank) {
  return ranks * chunks_per_rank / replicas(where);
}

/// The rank that runs a chunk for a micro-batch.
///
/// law: rank_of(w, P, chunk_on(w, P, r, i), replica) == r
constexpr int rank_of(placement where, int ranks, int chunk, int micro_batch = 0) {
  return where == placement::straight        ? chunk
         : where == placement::loop          ? chunk % ranks
         : where == placement::bidirectional ? (micro_batch % 2 == 0 ? chunk : ranks - 1 - chunk)
         : chunk / ranks % 2 == 0            ? chunk % ranks
                                             : ranks - 1 - chunk % ranks;
}

}  // namespace schedules

namespace detail {

/// A placement: `schedules::placement`, or a type with the same functions.
template <class W>
concept chunk_placement = requires(W const& where, int i) {
  { rank_of(where, i, i, i) } -> std::same_as<int>;
  { replicas(where, i) } -> std::same_as<int>;
  { holders(where, i) } -> std::same_as<int>;
  { holder_of(where, i, i) } -> std::same_as<int>;
  { fits(where, i, i) } -> std::same_as<bool>;
  { what_fits(where) } -> std::same_as<char const*>;
};
static_assert(chunk_placement<placement>);

}  // namespace detail

namespace schedules {

/// The index-th chunk of a rank, in model order (bidirectional: in the order of the replicas).
constexpr int chunk_on(placement where, int ranks, int rank, int index) {
  bool const reversed =
      (where == placement::vee || where == placement::bidirectional) && index % 2 == 1;
  int const within = reversed ? ranks - 1 - rank : rank;
  return replicas(where) == 1 ? index * ranks + within : within;
}

}  // namespace schedules

}  // namespace pp
