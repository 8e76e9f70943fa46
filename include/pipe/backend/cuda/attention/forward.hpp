// SPDX-License-Identifier: BSL-1.0
//
// Attention without the score matrix: a block of queries loops over tiles of keys; each row keeps
// its running maximum and sum, and its sums are rescaled when the maximum grows. The next values
// are copied while scores are computed, and the next keys while the scores are used.
#pragma once

#include <pipe/backend/cuda/attention/geometry.hpp>

namespace pp::cuda {

/// y = softmax(scale * q k^T) v for every head, scale = 1 / sqrt(d); lse = log of each softmax's
/// denominator.
///
/// shape:  q (B * T, H * d), k, v (B * S, KV * d) -> y (B * T, H * d), lse (B * T, H) in fp32
/// law:    a sample's and head's result does not depend on the others. A NaN score makes its row
///         NaN. A query that sees no key gives 0, lse 0.
/// work:   a block has 16 * Tall queries per warp of one head, and loops over tiles of `tile_keys`
/// keys.
///         Scores are computed in base 2, since the GPU has an instruction for 2^x only.
/// cost:   4 * T * S * d FLOPs per head, half of them if causal; reads k and v once per block of
///         queries
/// source: Milakov and Gimelshein, 2018; Dao, FlashAttention-2, 2023
///
/// Tall: see tile_products.hpp; no bit depends on it.
template <class P, int G, int Tall = attention_geometry<P, G>::tall_enough>
struct attention_forward {
  using shape = attention_geometry<P, G>;
  using T = typename P::element;
  static constexpr int depth = shape::depth, threads = shape::threads_for(shape::queries, Tall),
                       own = threads / 2 * Tall;
  static constexpr int whole_tile = sizeof(T) == 4 || depth > 64 ? 32 : 64,
                       all_keys = (shape::keys + 15) / 16 * 16;
  static constexpr int tile_keys = all_keys < whole_tile ? all_keys : whole_tile;  // keys of a tile
  static constexpr int query_blocks = (shape::queries + own - 1) / own;
  static constexpr extent blocks = extent(shape::samples) * shape::heads * query_blocks;
  static constexpr long workspace_bytes = shape::workspace_bytes;

  struct state {
    operand_registers<T, Tall> operands;
    float scores[Tall * tile_keys / 8][4], out[Tall * depth / 8][4];
    float largest[2 * Tall], newest[2 * Tall],
        sum[2 * Tall];  // of the thread's rows; scores times log2(e)
    int count;
  };
  struct shared {
    alignas(16) T queries[own * shape::pitch];
    alignas(16) T keys[tile_keys * shape::pitch];
    alignas(16) T values[tile_keys * shape::pitch];
    int counts[threads / warp_size];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    // The longest blocks first: late queries see the most keys.
    int const heads = shape::samples * shape::heads, line = int(block.position() % heads);
    int const first = (query_blocks - 1 - int(block.position() / heads)) * own,
              sample = line / shape::heads;
    int const head = line % shape::heads, key_head = head / shape::sharing;
    auto const own_rows = shape::queries_of(a, sample), key_rows = shape::keys_of(a, sample);
    if (shape::vary && first >= own_rows.count) return;
    int const rows = own_rows.count - first < own ? own_rows.count - first : own;
    int const present = shape::template present<threads>(block, a, key_rows),
              seen = shape::visible(first + rows - 1, present);
    int const begin = shape::first_seen(first) / tile_keys * tile_keys,
              tiles = (seen - begin + tile_keys - 1) / tile_keys;
    shared& mem = block.shared();
    head_rows<T const> const q = shape::query_rows(a), k = shape::key_rows(a),
                             v = shape::value_rows(a);
    T const* const query = q.data + (own_rows.first + first) * q.stride + head * shape::head_size;
    T const* const key = k.data + key_rows.first * k.stride + key_head * shape::head_size;
    T const* const value = v.data + key_rows.first * v.stride + key_head * shape::head_size;

    block.part([&](int thread, state& mine) {
      shape::template copy_rows<threads, own>(block, thread, query, q.stride, rows, mem.queries);
      shape::template copy_rows<threads, tile_keys>(block, thread, key + begin * k.stride, k.stride,
                                                    present - begin, mem.keys);
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        mine.largest[r] = -__builtin_huge_valf();
        mine.sum[r] = 0;
      }
      PIPE_UNROLL
      for (int j = 0; j < Tall * depth / 8; ++j) {
        PIPE_UNROLL
        for (int i = 0; i < 4; ++i) mine.out[j][i] = 0;
      }
    });
    commit_copies(block);
    for (int i = 0; i < tiles; ++i) {
      int const at = begin + i * tile_keys;
      block.part([&](int thread, state&) {
        shape::template copy_rows<threads, tile_keys>(block, thread, value + at * v.stride,
                                                      v.stride, present - at, mem.values);
      });
      commit_copies(block);
      await_copies<1>(block);
      multiply_rows<Tall, depth, tile_keys>(block, mem.queries, mem.keys,
                                            [](state& mine) { return mine.scores; });
      block.phase([](int, state&) {});  // all have read the keys
      block.part([&](int thread, state&) {
        if (i + 1 < tiles)
          shape::template copy_rows<threads, tile_keys>(block, thread,
                                                        key + (at + tile_keys) * k.stride, k.stride,
                                                        present - at - tile_keys, mem.keys);
      });
      commit_copies(block);
      to_probabilities(block, head, first, at, present);
      await_copies<1>(block);
      multiply_sums<Tall, tile_keys, depth>(
          block, [](state& mine) { return mine.scores; }, mem.values,
          [](state& mine) { return mine.out; });
      block.phase([](int, state&) {});  // all have read the values
    }
    await_copies<0>(block);
    finish(block, a, own_rows.first + first, head, rows);
  }

 private:
  /// scores = e^(scale * score - largest), 0 where a query does not see a key; the earlier sums are
  /// rescaled.
  template <class Block>
  PIPE_HD PIPE_INLINE static void to_probabilities(Block& block, [[maybe_unused]] int head,
                                                   int first, int at, int present) {
    constexpr float to_base_2 = shape::to_base_2;
    if constexpr (shape::is_shaped) {
      float const fall = shape::fall(head);
      block.part([&](int thread, state& mine) {
        PIPE_UNROLL
        for (int r = 0; r < 2 * Tall; ++r) {
          int const query = first + row_of_sums<Tall>(thread, r);
          PIPE_UNROLL
          for (int j = 0; j < tile_keys / 8; ++j) {
            PIPE_UNROLL
            for (int c = 0; c < 2; ++c) {
              int const key_at = at + 8 * j + thread % 4 * 2 + c;
              float& score = mine.scores[r / 2 * (tile_keys / 8) + j][r % 2 * 2 + c];
              score = shape::sees(query, key_at) ? shape::shape(score, fall, query, key_at).logit
                                                 : -__builtin_huge_valf();
            }
          }
        }
      });
    }
    bool const all = at + tile_keys <= shape::visible(first, present);
    if (!all)  // a branch of the block, so that most tiles do not look at places
      block.part([&](int thread, state& mine) {
        PIPE_UNROLL
        for (int r = 0; r < 2 * Tall; ++r) {
          int const visible = shape::visible(first + row_of_sums<Tall>(thread, r), present) - at;
          PIPE_UNROLL
          for (int j = 0; j < tile_keys / 8; ++j) {
            PIPE_UNROLL
            for (int c = 0; c < 2; ++c)
              if (8 * j + thread % 4 * 2 + c >= visible)
                mine.scores[r / 2 * (tile_keys / 8) + j][r % 2 * 2 + c] = -__builtin_huge_valf();
          }
        }
      });
    block.part([&]([[maybe_unused]] int thread, state& mine) {
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        float most = mine.scores[r / 2 * (tile_keys / 8)][r % 2 * 2];
        PIPE_UNROLL
        for (int j = 0; j < tile_keys / 8; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 2; ++c)
            most = larger{}(mine.scores[r / 2 * (tile_keys / 8) + j][r % 2 * 2 + c], most);
        }
        mine.newest[r] = most;
      }
    });
    PIPE_UNROLL
    for (int r = 0; r < 2 * Tall; ++r)
      reduce_lanes<4>(block, [&](state& mine) -> float& { return mine.newest[r]; }, larger{});
    block.part([&]([[maybe_unused]] int thread, state& mine) {
      float rescale[2 * Tall];
      bool grows = false;
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        float largest = larger{}(mine.newest[r] * to_base_2, mine.largest[r]);
        if constexpr (shape::some_see_none)  // or infinity minus infinity would be NaN
          if (shape::visible(first + row_of_sums<Tall>(thread, r), present) <= 0) largest = 0;
        // The same for a row that has seen no key yet, but may see a key later.
        float const base = shape::is_shaped && largest == -__builtin_huge_valf() ? 0.0f : largest;
        rescale[r] = power_of_2(mine.largest[r] - base);
        grows = grows || rescale[r] != 1;
        mine.largest[r] = largest;
        float sum = 0;
        PIPE_UNROLL
        for (int j = 0; j < tile_keys / 8; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 2; ++c) {
            float& score = mine.scores[r / 2 * (tile_keys / 8) + j][r % 2 * 2 + c];
            score = power_of_2(score * to_base_2 - base);
            sum += score;
          }
        }
        mine.sum[r] = mine.sum[r] * rescale[r] + sum;
      }
      if (!grows) return;  // most tiles after a row's first
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        PIPE_UNROLL
        for (int j = 0; j < depth / 8; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 2; ++c)
            mine.out[r / 2 * (depth / 8) + j][r % 2 * 2 + c] *= rescale[r];
        }
      }
    });
  }

  template <class Block>
  PIPE_HD PIPE_INLINE static void finish(Block& block, arguments const& a, extent at, int head,
                                         int rows) {
    constexpr detail::group g = group_of<P, G>::value;
    PIPE_UNROLL
    for (int r = 0; r < 2 * Tall; ++r)
      reduce_lanes<4>(block, [&](state& mine) -> float& { return mine.sum[r]; }, plus{});
    block.part([&](int thread, state& mine) {
      float factor[2 * Tall];
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        bool const sees_none = mine.sum[r] == 0;
        factor[r] = sees_none ? 0.0f : 1.0f / mine.sum[r];
        int const row = row_of_sums<Tall>(thread, r);
        if (thread % 4 == 0 && row < rows)
          a.at<float>(g.out[1])[(at + row) * shape::heads + head] =
              sees_none ? 0.0f
                        : math::multiply_add(mine.largest[r], log_of_2, math::log(mine.sum[r]));
      }
      shape::template save_rows<Tall>(
          thread, mine.out, factor, rows,
          a.at<T>(g.out[0]) + at * shape::width + head * shape::head_size, shape::width);
    });
  }
};

}  // namespace pp::cuda
