// SPDX-License-Identifier: BSL-1.0
//
// The gradients of attention, in three kernels, so that one block computes every sum, in a fixed
// order, without atomics: the sums of y * dy; the gradients of keys and values, where a block has
// some keys and reads all queries; the gradients of queries, where a block has some queries and
// reads all keys. The last two kernels compute scores again, from the saved logarithms of the
// denominators.
//
// A block of keys computes scores with keys as rows: then the scores are in the layout of a left
// operand, as all sums are, for the products that read them.
#pragma once

#include <pipe/backend/cuda/attention/geometry.hpp>
#include <pipe/backend/cuda/core/launch_rows.hpp>

namespace pp::cuda {

/// The sum of y * dy for every query and head, which is the mean of its probabilities' gradients,
/// and its lse in base 2, for the next two kernels.
///
/// shape: y, dy (B * T, H * d), lse (B * T, H) -> slopes (B, H, T), logarithms (B, H, T)
/// work:  eight lanes share one head of one query
/// law:   a lane adds its pieces, then a butterfly adds the lanes; the order does not depend on the
///        other queries
/// cost:  one pass over y and dy, bound by bytes
template <class P, int G>
struct attention_slopes {
  using shape = attention_geometry<P, G>;
  using T = typename P::element;
  static constexpr int threads = 256, lanes = 8, each = access_width<T>(shape::head_size);
  static constexpr extent items = launch_rows<P, G>::planned * shape::heads,
                          at_once = threads / lanes;
  static constexpr extent blocks = (items + at_once - 1) / at_once;
  static constexpr long workspace_bytes = shape::workspace_bytes;
  struct state {
    float sum;
  };
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    extent const first = block.position() * at_once, end = launch_rows<P, G>::end(a) * shape::heads;
    if (shape::vary && first >= end) return;
    block.part([&](int thread, state& mine) {
      extent const item = first + thread / lanes;
      mine.sum = 0;
      if (item >= end) return;
      for (int c = thread % lanes * each; c < shape::head_size; c += lanes * each) {
        float y[each], dy[each];
        load<each>(a.at<T const>(g.in[2]) + item * shape::head_size + c, y);
        load<each>(a.at<T const>(g.in[0]) + item * shape::head_size + c, dy);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) mine.sum += y[i] * dy[i];
      }
    });
    reduce_lanes<lanes>(block, [](state& mine) -> float& { return mine.sum; }, plus{});
    block.part([&](int thread, state& mine) {
      extent const item = first + thread / lanes;
      if (item >= end || thread % lanes != 0) return;
      detail::row_place const at = launch_rows<P, G>::place_of(a, item / shape::heads);
      extent const to =
          shape::line_of(shape::queries_of(a, int(at.segment)), int(item % shape::heads)) +
          at.position;
      shape::slopes(a)[to] = mine.sum;
      shape::logarithms(a)[to] = a.at<float const>(g.in[3])[item] * log2_of_e;
    });
  }
};

/// Common constants of the next two kernels: a block's own rows (keys or queries) in shared memory,
/// and tiles of the other operand's rows, one after the other, in `stages` buffers.
template <class P, int G, int Rows, int Others, int Tall>
struct attention_tiles {
  using shape = attention_geometry<P, G>;
  using T = typename P::element;
  static constexpr int depth = shape::depth, threads = shape::threads_for(Rows, Tall),
                       own = threads / 2 * Tall;
  static constexpr int all_others = (Others + 15) / 16 * 16;
  static constexpr int row_blocks = (Rows + own - 1) / own;

  template <int Stages, int TileRows>
  struct memory {
    static constexpr int stages = Stages, tile_rows = TileRows;
    alignas(16) T own_tile[2][own * shape::pitch];
    alignas(16) T other[stages][2][tile_rows * shape::pitch];
    alignas(16) float logarithms[stages][tile_rows];
    alignas(16) float slopes[stages][tile_rows];
    int counts[threads / warp_size];
  };
  /// Tiles of 32 rows of the other operand in two buffers; smaller tiles, or one buffer, if a block
  /// would need more shared memory than every device has.
  static constexpr auto choose() {
    constexpr int widest = all_others < 32 ? all_others : 32;
    if constexpr (sizeof(memory<2, widest>) <= least_shared_bytes)
      return memory<2, widest>{};
    else if constexpr (sizeof(memory<2, 16>) <= least_shared_bytes)
      return memory<2, 16>{};
    else
      return memory<1, 16>{};
  }
  using shared = decltype(choose());
  static constexpr int stages = shared::stages, tile_rows = shared::tile_rows;
  static constexpr float to_base_2 = shape::to_base_2;
};

/// dk = scale * ds^T q and dv = p^T dy, where p = 2^(scale * log2(e) * q k^T - logarithm) and ds =
/// p * (dy v^T - slope).
///
/// shape: q, dy (B * T, H * d), k, v (B * S, KV * d), slopes, logarithms (B, H, T) -> dk, dv (B *
///        S, KV * d)
/// work:  a block owns 16 * Tall keys per warp of one head of keys, and loops over tiles of the
///        queries that see these keys
/// law:   sums run over the heads that share the keys, ascending, then over queries, ascending; no
///        atomics
/// cost:  four products of T * S * d multiply-adds per head; scores are computed again, which costs
///        no more than loading them
///
/// Tall: see tile_products.hpp; no bit depends on it.
template <class P, int G, int Tall = attention_geometry<P, G>::tall_enough_for_keys>
struct attention_key_gradients {
  using shape = attention_geometry<P, G>;
  using T = typename P::element;
  using tiles = attention_tiles<P, G, shape::keys, shape::queries, Tall>;
  static constexpr int depth = shape::depth, threads = tiles::threads, own = tiles::own,
                       tile_rows = tiles::tile_rows;
  static constexpr extent blocks = extent(shape::samples) * shape::key_heads * tiles::row_blocks;
  static constexpr long workspace_bytes = shape::workspace_bytes;
  using shared = typename tiles::shared;
  struct state {
    operand_registers<T, Tall> operands;
    float scores[Tall * tile_rows / 8][4], slopes[Tall * tile_rows / 8][4];
    float keys[Tall * depth / 8][4], values[Tall * depth / 8][4];  // their gradients
    int count;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    // The longest blocks first: most queries see early keys.
    constexpr int lines = shape::samples * shape::key_heads;
    int const line = int(block.position() % lines), first = int(block.position() / lines) * own;
    int const sample = line / shape::key_heads, key_head = line % shape::key_heads;
    auto const query_rows = shape::queries_of(a, sample), own_rows = shape::keys_of(a, sample);
    if (shape::vary && first >= own_rows.count) return;
    int const rows = own_rows.count - first < own ? own_rows.count - first : own;
    int const present = shape::template present<threads>(block, a, own_rows);
    int const first_query = shape::first_query(first) / tile_rows * tile_rows,
              last_query = shape::end_query(first + rows - 1),
              end_query = last_query < query_rows.count ? last_query : query_rows.count;
    int const query_tiles = first < present && first_query < end_query
                                ? (end_query - first_query + tile_rows - 1) / tile_rows
                                : 0;
    shared& mem = block.shared();
    head_rows<T const> const q = shape::query_rows(a), k = shape::key_rows(a),
                             v = shape::value_rows(a);
    T const* const dy = shape::output_gradient(a);
    extent const own_row = own_rows.first + first, query_row = query_rows.first;
    int const column = key_head * shape::head_size;

    block.part([&](int thread, state& mine) {
      shape::template copy_rows<threads, own>(block, thread, k.data + own_row * k.stride + column,
                                              k.stride, present - first, mem.own_tile[0]);
      shape::template copy_rows<threads, own>(block, thread, v.data + own_row * v.stride + column,
                                              v.stride, present - first, mem.own_tile[1]);
      PIPE_UNROLL
      for (int j = 0; j < Tall * depth / 8; ++j) {
        PIPE_UNROLL
        for (int i = 0; i < 4; ++i) mine.keys[j][i] = mine.values[j][i] = 0;
      }
    });
    stream_tiles<tiles::stages>(
        block, shape::sharing * query_tiles,
        [&](int i, int stage) {
          int const head = key_head * shape::sharing + (shape::sharing > 1 ? i / query_tiles : 0),
                    at = first_query + (shape::sharing > 1 ? i % query_tiles : i) * tile_rows;
          int const there = query_rows.count - at, from = head * shape::head_size;
          extent const line_of_rows = shape::line_of(query_rows, head) + at;
          block.part([&](int thread, state&) {
            shape::template copy_rows<threads, tile_rows>(
                block, thread, q.data + (query_row + at) * q.stride + from, q.stride, there,
                mem.other[stage][0]);
            shape::template copy_rows<threads, tile_rows>(
                block, thread, dy + (query_row + at) * shape::width + from, shape::width, there,
                mem.other[stage][1]);
            static_assert(tile_rows <= threads);
            if (thread < tile_rows) {
              bool const inside = thread < there;
              extent const row = line_of_rows + (inside ? thread : 0);
              copy_async<4>(block, mem.logarithms[stage] + thread, shape::logarithms(a) + row,
                            inside);
              copy_async<4>(block, mem.slopes[stage] + thread, shape::slopes(a) + row, inside);
            }
          });
        },
        [&](int i, int stage) {
          int const head = key_head * shape::sharing + (shape::sharing > 1 ? i / query_tiles : 0),
                    at = first_query + (shape::sharing > 1 ? i % query_tiles : i) * tile_rows;
          T const* const query = mem.other[stage][0];
          T const* const slope = mem.other[stage][1];
          multiply_rows<Tall, depth, tile_rows>(block, mem.own_tile[0], query,
                                                [](state& mine) { return mine.scores; });
          multiply_rows<Tall, depth, tile_rows>(block, mem.own_tile[1], slope,
                                                [](state& mine) { return mine.slopes; });
          to_gradients(block, head, first, at, present, stage);
          multiply_sums<Tall, tile_rows, depth>(
              block, [](state& mine) { return mine.scores; }, slope,
              [](state& mine) { return mine.values; });
          multiply_sums<Tall, tile_rows, depth>(
              block, [](state& mine) { return mine.slopes; }, query,
              [](state& mine) { return mine.keys; });
        });
    block.part([&](int thread, state& mine) {
      head_rows<T> const dk = shape::key_gradients(a), dv = shape::value_gradients(a);
      float factor[2 * Tall], one[2 * Tall];
      for (float& f : factor) f = shape::scale;
      for (float& f : one) f = 1;
      if constexpr (shape::rotates_in_registers)
        shape::template rotate_back<Tall>(a, thread, mine.keys, first);
      shape::template save_rows<Tall>(thread, mine.keys, factor, rows,
                                      dk.data + own_row * dk.stride + column, dk.stride);
      shape::template save_rows<Tall>(thread, mine.values, one, rows,
                                      dv.data + own_row * dv.stride + column, dv.stride);
    });
  }

 private:
  /// Scores of keys by queries become probabilities p, and slopes dp become p * (dp - mean), the
  /// gradients of scores without the factor `scale`; both are 0 if a query does not see a key.
  template <class Block>
  PIPE_HD PIPE_INLINE static void to_gradients(Block& block, [[maybe_unused]] int head, int first,
                                               int at, int present, int stage) {
    shared& mem = block.shared();
    bool const all = !shape::is_shaped && first + own <= shape::visible(at, present);
    [[maybe_unused]] float const fall = shape::fall(head);
    block.part([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int j = 0; j < tile_rows / 8; ++j) {
        float logarithm[2], mean[2];  // of the queries of a thread's two columns
        int const t = 8 * j + place_in_c(thread % warp_size, 0).column;
        load<2>(mem.logarithms[stage] + t, logarithm);
        load<2>(mem.slopes[stage] + t, mean);
        PIPE_UNROLL
        for (int m = 0; m < Tall; ++m) {
          float(&score)[4] = mine.scores[m * (tile_rows / 8) + j];
          float(&slope)[4] = mine.slopes[m * (tile_rows / 8) + j];
          PIPE_UNROLL
          for (int i = 0; i < 4; ++i) {
            slope[i] -= mean[i % 2];
            if constexpr (shape::is_shaped) {
              shaped_score const s = shape::shape(score[i], fall, at + t + i % 2,
                                                  first + row_of_sums<Tall>(thread, 2 * m + i / 2));
              score[i] = s.logit;
              slope[i] *= s.slope;
            }
            score[i] = power_of_2(score[i] * tiles::to_base_2 - logarithm[i % 2]);
            slope[i] *= score[i];
          }
        }
      }
    });
    if (all) return;  // a branch of the block, so that most tiles do not look at places
    block.part([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        int const s = first + row_of_sums<Tall>(thread, r);
        PIPE_UNROLL
        for (int j = 0; j < tile_rows / 8; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 2; ++c) {
            int const i = r / 2 * (tile_rows / 8) + j, k = r % 2 * 2 + c;
            int const query = at + 8 * j + thread % 4 * 2 + c;
            if (s >= shape::visible(query, present) || !shape::sees(query, s))
              mine.scores[i][k] = mine.slopes[i][k] = 0;
          }
        }
      }
    });
  }
};

/// dq = scale * ds k, where ds = p * (dy v^T - slope) as in attention_key_gradients.
///
/// shape: q, dy (B * T, H * d), k, v (B * S, KV * d), slopes, logarithms (B, H, T) -> dq (B * T, H
///        * d)
/// work:  a block owns 16 * Tall queries per warp of one head, and loops over tiles of the keys
///        that these queries see
/// law:   sums run over ascending keys
/// cost:  three products of T * S * d multiply-adds per head
///
/// Tall: see tile_products.hpp; no bit depends on it.
template <class P, int G, int Tall = attention_geometry<P, G>::tall_enough>
struct attention_query_gradients {
  using shape = attention_geometry<P, G>;
  using T = typename P::element;
  using tiles = attention_tiles<P, G, shape::queries, shape::keys, Tall>;
  static constexpr int depth = shape::depth, threads = tiles::threads, own = tiles::own,
                       tile_rows = tiles::tile_rows;
  static constexpr extent blocks = extent(shape::samples) * shape::heads * tiles::row_blocks;
  static constexpr long workspace_bytes = shape::workspace_bytes;
  using shared = typename tiles::shared;
  struct state {
    operand_registers<T, Tall> operands;
    float scores[Tall * tile_rows / 8][4], slopes[Tall * tile_rows / 8][4],
        out[Tall * depth / 8][4];
    float logarithm[2 * Tall], mean[2 * Tall];  // of the thread's rows
    int count;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr int lines = shape::samples * shape::heads;
    int const line = int(block.position() % lines),
              first = (tiles::row_blocks - 1 - int(block.position() / lines)) * own;
    int const sample = line / shape::heads, head = line % shape::heads,
              key_head = head / shape::sharing;
    auto const own_rows = shape::queries_of(a, sample), key_rows = shape::keys_of(a, sample);
    if (shape::vary && first >= own_rows.count) return;
    int const rows = own_rows.count - first < own ? own_rows.count - first : own;
    int const present = shape::template present<threads>(block, a, key_rows);
    int const seen = shape::visible(first + rows - 1, present),
              begin = shape::first_seen(first) / tile_rows * tile_rows;
    shared& mem = block.shared();
    head_rows<T const> const q = shape::query_rows(a), k = shape::key_rows(a),
                             v = shape::value_rows(a);
    extent const own_row = own_rows.first + first, key_row = key_rows.first;
    int const column = head * shape::head_size, from = key_head * shape::head_size;

    block.part([&](int thread, state& mine) {
      shape::template copy_rows<threads, own>(block, thread, q.data + own_row * q.stride + column,
                                              q.stride, rows, mem.own_tile[0]);
      shape::template copy_rows<threads, own>(
          block, thread, shape::output_gradient(a) + own_row * shape::width + column, shape::width,
          rows, mem.own_tile[1]);
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        int const row = row_of_sums<Tall>(thread, r);
        extent const at = shape::line_of(own_rows, head) + first + (row < rows ? row : 0);
        mine.logarithm[r] = shape::logarithms(a)[at];
        mine.mean[r] = shape::slopes(a)[at];
      }
      PIPE_UNROLL
      for (int j = 0; j < Tall * depth / 8; ++j) {
        PIPE_UNROLL
        for (int i = 0; i < 4; ++i) mine.out[j][i] = 0;
      }
    });
    stream_tiles<tiles::stages>(
        block, (seen - begin + tile_rows - 1) / tile_rows,
        [&](int i, int stage) {
          int const at = begin + i * tile_rows;
          block.part([&](int thread, state&) {
            shape::template copy_rows<threads, tile_rows>(
                block, thread, k.data + (key_row + at) * k.stride + from, k.stride, present - at,
                mem.other[stage][0]);
            shape::template copy_rows<threads, tile_rows>(
                block, thread, v.data + (key_row + at) * v.stride + from, v.stride, present - at,
                mem.other[stage][1]);
          });
        },
        [&](int i, int stage) {
          multiply_rows<Tall, depth, tile_rows>(block, mem.own_tile[0], mem.other[stage][0],
                                                [](state& mine) { return mine.scores; });
          multiply_rows<Tall, depth, tile_rows>(block, mem.own_tile[1], mem.other[stage][1],
                                                [](state& mine) { return mine.slopes; });
          to_gradients(block, head, first, begin + i * tile_rows, present);
          multiply_sums<Tall, tile_rows, depth>(
              block, [](state& mine) { return mine.slopes; }, mem.other[stage][0],
              [](state& mine) { return mine.out; });
        });
    block.part([&](int thread, state& mine) {
      head_rows<T> const dq = shape::query_gradients(a);
      float factor[2 * Tall];
      for (float& f : factor) f = shape::scale;
      if constexpr (shape::rotates_in_registers)
        shape::template rotate_back<Tall>(a, thread, mine.out, first);
      shape::template save_rows<Tall>(thread, mine.out, factor, rows,
                                      dq.data + own_row * dq.stride + column, dq.stride);
    });
  }

 private:
  /// The slopes dp of a tile become p * (dp - mean), the gradients of its scores without the factor
  /// `scale`; 0 if a query does not see a key.
  template <class Block>
  PIPE_HD PIPE_INLINE static void to_gradients(Block& block, [[maybe_unused]] int head, int first,
                                               int at, int present) {
    bool const all = !shape::is_shaped && at + tile_rows <= shape::visible(first, present);
    [[maybe_unused]] float const fall = shape::fall(head);
    block.part([&]([[maybe_unused]] int thread, state& mine) {
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        PIPE_UNROLL
        for (int j = 0; j < tile_rows / 8; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 2; ++c) {
            float score = mine.scores[r / 2 * (tile_rows / 8) + j][r % 2 * 2 + c];
            float& slope = mine.slopes[r / 2 * (tile_rows / 8) + j][r % 2 * 2 + c];
            slope -= mine.mean[r];
            if constexpr (shape::is_shaped) {
              shaped_score const s = shape::shape(score, fall, first + row_of_sums<Tall>(thread, r),
                                                  at + 8 * j + thread % 4 * 2 + c);
              score = s.logit;
              slope *= s.slope;
            }
            slope *= power_of_2(score * tiles::to_base_2 - mine.logarithm[r]);
          }
        }
      }
    });
    if (all) return;  // a branch of the block, so that most tiles do not look at places
    block.part([&](int thread, state& mine) {
      PIPE_UNROLL
      for (int r = 0; r < 2 * Tall; ++r) {
        int const query = first + row_of_sums<Tall>(thread, r),
                  visible = shape::visible(query, present) - at;
        PIPE_UNROLL
        for (int j = 0; j < tile_rows / 8; ++j) {
          PIPE_UNROLL
          for (int c = 0; c < 2; ++c)
            if (int const s = 8 * j + thread % 4 * 2 + c;
                s >= visible || !shape::sees(query, at + s))
              mine.slopes[r / 2 * (tile_rows / 8) + j][r % 2 * 2 + c] = 0;
        }
      }
    });
  }
};

}  // namespace pp::cuda
