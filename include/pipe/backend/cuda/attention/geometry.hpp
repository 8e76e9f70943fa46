// SPDX-License-Identifier: BSL-1.0
//
// The common parts of the attention kernels: the places of heads in memory, the keys that a query
// sees, and copies between memory and the tiles of a block. Scores are never written to memory: a
// block owns 16 rows for each of its warps and loops over all tiles that these rows need.
#pragma once

#include <pipe/backend/cuda/attention/score_rule.hpp>
#include <pipe/backend/cuda/backend.hpp>
#include <pipe/backend/cuda/core/cp_async.hpp>
#include <pipe/backend/cuda/matmul/tile_products.hpp>
#include <pipe/backend/cuda/core/vectors.hpp>
#include <pipe/backend/cuda/core/warp.hpp>

namespace pp::cuda {

/// The rows of one operand. Element c of head h at position t of sample b is data[(b * positions +
/// t) * stride + h * head_size + c].
template <class T>
struct head_rows {
  T* data;
  extent stride;
};

/// 2^x to 22 bits; 0 below 2^-126. NaN stays NaN.
PIPE_HD PIPE_INLINE float power_of_2(float x) {
#ifdef __CUDA_ARCH__
  return math::device_exp2(x);
#else
  return x < -126.0f ? 0.0f : float(libm::exp2(double(x)));
#endif
}

/// The shape and the operands of group G of P, an attention or its gradient, as constants that
/// device code can use.
///
/// shape: B = samples, T = queries, S = keys, H = heads, KV = key_heads, d = head_size; fused: q,
///        k, v side by side in rows of (H + 2 KV) * d
/// needs: d <= 128; with rotation: fused and d even
template <class P, int G>
struct attention_geometry : score_rule<P, G> {
  using rule = score_rule<P, G>;
  using rule::ahead;
  using rule::is_causal;
  using rule::keys;
  using rule::of;
  using rule::queries;
  using T = typename P::element;
  static constexpr bool is_gradient = group_of<P, G>::value.anchor == op_kind::attention_gradient;
  static constexpr bool is_fused = of.is_fused();                // slices of one matrix
  static constexpr int samples = detail::planned_segments<P>();  // at most
  static constexpr bool vary = detail::has_segments<P>;
  static constexpr int heads = of.heads, key_heads = of.kv_heads;
  static constexpr int head_size = group_of<P, G>::value.columns / heads,
                       sharing = heads / key_heads;
  static constexpr int width = heads * head_size, key_width = key_heads * head_size,
                       fused = width + 2 * key_width;
  static constexpr bool some_see_none = is_causal && ahead < 0;  // the first queries
  static_assert(head_size <= detail::most_of_a_cuda_head);

  static constexpr int rotation_index = !is_gradient ? group_of<P, G>::value.in[2]
                                        : is_fused   ? group_of<P, G>::value.in[4]
                                                     : -1;
  static constexpr int ids_index =
      is_gradient ? group_of<P, G>::value.in[5] : group_of<P, G>::value.in[3];
  static constexpr bool is_rotary = rotation_index >= 0;
  static_assert(!is_rotary || (is_fused && head_size % 2 == 0));

  /// Columns of a head in shared memory, filled up with zeros.
  static constexpr int depth = (head_size + 15) / 16 * 16, pitch = pitch_of<T>(depth);
  static constexpr int each = access_width<T>(head_size);  // elements of an access

  /// Threads of a block of `rows` rows, with 16 * tall rows for each warp.
  static constexpr int threads_for(int rows, int tall) {
    int const warps = (rows + 16 * tall - 1) / (16 * tall);
    return warp_size * (warps < 4 ? warps : 4);
  }
  /// The number of tiles of 16 rows of a warp in a block of queries: two if registers suffice and
  /// every multiprocessor gets two blocks.
  static constexpr int tall_enough =
      depth <= (sizeof(T) == 4 ? 64 : 96) && extent(P::samples) * heads * (queries / 128) >= 256
          ? 2
          : 1;
  /// The same number for a block of keys, whose threads have twice as many sums.
  static constexpr int tall_enough_for_keys =
      depth <= (sizeof(T) == 4 ? 32 : 64) && extent(P::samples) * key_heads * (keys / 128) >= 256
          ? 2
          : 1;

  // ---- the rows of a sample: as planned, or with Lengths of its segment ----

  /// The first row of a sample among the queries, or keys, of the micro-batch, and their number,
  /// which is 0 for an absent sample.
  struct row_range {
    extent first;
    int count;
  };
  PIPE_HD PIPE_INLINE static row_range queries_of([[maybe_unused]] arguments const& a, int sample) {
    if constexpr (vary)
      if (a.segments != nullptr)
        return {a.segments->first_of(sample), a.segments->length_of(sample)};
    return {extent(sample) * queries, queries};
  }
  PIPE_HD PIPE_INLINE static row_range keys_of([[maybe_unused]] arguments const& a, int sample) {
    if constexpr (vary)
      if (detail::segment_list const* const of = is_fused ? a.segments : a.key_segments;
          of != nullptr)
        return {of->first_of(sample), of->length_of(sample)};
    return {extent(sample) * keys, keys};
  }
  /// The first of the numbers of a head's queries in slopes() and logarithms().
  PIPE_HD PIPE_INLINE static extent line_of(row_range of, int head) {
    return of.first * heads + extent(head) * of.count;
  }

  // ---- the workspace: rotated queries and keys, as in a fused matrix without values; for
  // gradients also two numbers for each query and head ----

  static constexpr long aligned(long bytes) { return (bytes + 255) / 256 * 256; }
  static constexpr int rotated_width = width + key_width;
  static constexpr long rotated_bytes =
      is_rotary ? aligned(long(P::samples) * queries * rotated_width * long(sizeof(T))) : 0;
  static constexpr long row_bytes =
      is_gradient ? aligned(long(P::samples) * heads * queries * long(sizeof(float))) : 0;
  static constexpr long workspace_bytes = rotated_bytes + 2 * row_bytes;

  PIPE_HD static T* rotated(arguments const& a) { return static_cast<T*>(a.workspace); }
  /// [B, H, T]: the sum of y * dy.
  PIPE_HD static float* slopes(arguments const& a) {
    return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + rotated_bytes);
  }
  /// [B, H, T]: the logarithm to base 2 of a softmax's denominator.
  PIPE_HD static float* logarithms(arguments const& a) {
    return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + rotated_bytes + row_bytes);
  }

  // ---- the operands ----

  PIPE_HD static head_rows<T const> query_rows(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    if constexpr (is_rotary)
      return {rotated(a), rotated_width};
    else
      return {a.at<T const>(g.in[is_gradient ? 1 : 0]), is_fused ? fused : width};
  }
  PIPE_HD static head_rows<T const> key_rows(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    if constexpr (is_rotary)
      return {rotated(a) + width, rotated_width};
    else if constexpr (is_fused)
      return {a.at<T const>(g.in[is_gradient ? 1 : 0]) + width, fused};
    else
      return {a.at<T const>(g.in[is_gradient ? 4 : 1]), 2 * key_width};
  }
  PIPE_HD static head_rows<T const> value_rows(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    if constexpr (is_fused)
      return {a.at<T const>(g.in[is_gradient ? 1 : 0]) + width + key_width, fused};
    else
      return {a.at<T const>(g.in[is_gradient ? 4 : 1]) + key_width, 2 * key_width};
  }

  PIPE_HD static T const* output_gradient(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    return a.at<T const>(g.in[0]);
  }
  PIPE_HD static head_rows<T> query_gradients(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    return {a.at<T>(g.out[0]), is_fused ? fused : width};
  }
  PIPE_HD static head_rows<T> key_gradients(arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    if constexpr (is_fused)
      return {a.at<T>(g.out[0]) + width, fused};
    else
      return {a.at<T>(g.out[1]), 2 * key_width};
  }
  PIPE_HD static head_rows<T> value_gradients(arguments const& a) {
    head_rows<T> const keys_too = key_gradients(a);
    return {keys_too.data + key_width, keys_too.stride};
  }

  /// The keys of a sample without trailing ids of -1. Uses state.count and shared.counts, one for
  /// each warp.
  template <int Threads, class Block>
  PIPE_HD PIPE_INLINE static int present(Block& block, arguments const& a, row_range of) {
    if constexpr (ids_index < 0) return of.count;
    using state = typename Block::state;
    block.part([&](int thread, state& mine) {
      int const* const ids = a.ids(ids_index) + of.first;
      mine.count = 0;
      for (int s = thread; s < of.count; s += Threads)
        if (ids[s] >= 0) mine.count = s + 1;
    });
    reduce_lanes(block, [](state& mine) -> int& { return mine.count; }, larger{});
    block.phase([&](int thread, state& mine) {
      if (thread % warp_size == 0) block.shared().counts[thread / warp_size] = mine.count;
    });
    int most = 0;
    PIPE_UNROLL
    for (int w = 0; w < Threads / warp_size; ++w) most = larger{}(most, block.shared().counts[w]);
    return most;
  }

  /// Starts the copy of `Rows` rows of a head to shared memory, with zeros for rows from `there` on
  /// and for columns beyond d. Is called in a phase.
  ///
  /// shape: from (there, d), row stride `stride` -> to (Rows, depth), row pitch `pitch`
  template <int Threads, int Rows, class Block>
  PIPE_HD PIPE_INLINE static void copy_rows(Block& block, int thread, T const* from, extent stride,
                                            int there, T* to) {
    constexpr int pieces = depth / each, trips = (Rows * pieces + Threads - 1) / Threads;
    if constexpr (Threads % pieces ==
                  0) {  // a thread stays in its column, so offsets are constants
      constexpr int down = Threads / pieces;
      int const first = thread / pieces, column = thread % pieces * each;
      T const* const source = from + first * stride + column;
      T* const target = to + first * pitch + column;
      PIPE_UNROLL
      for (int i = 0; i < trips; ++i) {
        if (Rows % down != 0 && first + i * down >= Rows) break;
        copy_piece(block, target + i * down * pitch, source + i * down * stride,
                   first < there - i * down && (depth == head_size || column < head_size));
      }
    } else {
      PIPE_UNROLL
      for (int i = 0; i < trips; ++i) {
        int const at = thread + i * Threads, row = at / pieces, column = at % pieces * each;
        if (Rows * pieces % Threads != 0 && row >= Rows) break;
        copy_piece(block, to + row * pitch + column, from + row * stride + column,
                   row < there && column < head_size);
      }
    }
  }

  /// One access of a row; `from` is read only if present.
  template <class Block>
  PIPE_HD PIPE_INLINE static void copy_piece(Block& block, T* to, T const* from, bool present) {
    constexpr int bytes = each * int(sizeof(T));
    if constexpr (bytes >= 4)
      copy_async<bytes>(block, to, from, present);
    else
      *to = present ? *from : T(0.0f);
  }

  /// Stores sums * factor, rounded to T, to the block's rows of a head; rows from `there` on are
  /// not stored.
  ///
  /// shape: sums (16 * Tall rows per warp, depth), factor: one per row of the thread -> to (there,
  ///        d), row stride `stride`
  template <int Tall>
  PIPE_HD PIPE_INLINE static void save_rows(int thread, float const (&sums)[Tall * depth / 8][4],
                                            float const (&factor)[2 * Tall], int there, T* to,
                                            extent stride) {
    PIPE_UNROLL
    for (int r = 0; r < 2 * Tall; ++r) {
      int const row = row_of_sums<Tall>(thread, r);
      if (row >= there) continue;
      PIPE_UNROLL
      for (int j = 0; j < depth / 8; ++j) {
        int const column = 8 * j + thread % 4 * 2, i = r % 2 * 2;
        if (column >= head_size) continue;
        T* const at = to + row * stride + column;
        float const(&tile_sums)[4] = sums[r / 2 * (depth / 8) + j];
        float const pair[2] = {tile_sums[i] * factor[r], tile_sums[i + 1] * factor[r]};
        if constexpr (head_size % 2 == 0) {
          save<2>(at, pair);
        } else {
          at[0] = T(pair[0]);
          if (column + 1 < head_size) at[1] = T(pair[1]);
        }
      }
    }
  }

  /// Whether a thread has both halves of a pair among its sums: then gradients are rotated back in
  /// registers.
  static constexpr bool rotates_in_registers = is_rotary && head_size % 16 == 0;

  /// Gradients of rotated rows become gradients of the rows before the rotation; `first` is the
  /// position of the block's first row.
  template <int Tall>
  PIPE_HD PIPE_INLINE static void rotate_back(arguments const& a, int thread,
                                              float (&sums)[Tall * depth / 8][4], int first) {
    constexpr int half = head_size / 2;
    PIPE_UNROLL
    for (int r = 0; r < 2 * Tall; ++r) {
      int const t = first + row_of_sums<Tall>(thread, r);
      if (t >= keys) continue;
      float const* const table =
          a.at<float const>(rotation_index) + extent(t) * head_size + thread % 4 * 2;
      PIPE_UNROLL
      for (int j = 0; j < half / 8; ++j) {
        float cosine[2], sine[2];
        load<2>(table + 8 * j, cosine);
        load<2>(table + half + 8 * j, sine);
        PIPE_UNROLL
        for (int k = 0; k < 2; ++k) {
          float& low = sums[r / 2 * (depth / 8) + j][r % 2 * 2 + k];
          float& high = sums[r / 2 * (depth / 8) + j + half / 8][r % 2 * 2 + k];
          float const x = low * cosine[k] + high * sine[k];
          high = high * cosine[k] - low * sine[k];
          low = x;
        }
      }
    }
  }
};

/// A pipeline of tiles through shared memory: copy(i, i % Stages), then use(i, i % Stages), for
/// every i < count. With two stages the next tile is copied while the current tile is used.
///
/// needs: copies started before the call and not committed belong to the first tile; `use` reads
///        the tile in parts, between which no thread writes it
template <int Stages, class Block, class Copy, class Use>
PIPE_HD PIPE_INLINE void stream_tiles(Block& block, int count, Copy copy, Use use) {
  using state = typename Block::state;
  if (count > 0) copy(0, 0);
  commit_copies(block);
  for (int i = 0; i < count; ++i) {
    if constexpr (Stages == 2) {
      if (i + 1 < count) copy(i + 1, (i + 1) % 2);
      commit_copies(block);
      await_copies<1>(block);
    } else {
      await_copies<0>(block);
    }
    use(i, i % Stages);
    block.phase([](int, state&) {});  // all have read the tile
    if constexpr (Stages == 1) {
      if (i + 1 < count) copy(i + 1, 0);
      commit_copies(block);
    }
  }
  await_copies<0>(block);
}

}  // namespace pp::cuda
