// SPDX-License-Identifier: BSL-1.0
//
// The lookup of rows of a table by ids, bags (sums and means of such rows), and the gradient of the
// table. The gradient adds the rows of each id in ascending order, and no two threads add to the
// same element: rows are sorted by id (radix_sort_rows.hpp), the sorted rows are cut into chunks of
// equal length, a thread adds the sequences of equal ids in its chunk, and a second kernel joins
// sequences that span chunks. So the work of a block does not depend on how frequent an id is, and
// the order of additions depends on the shapes and the ids alone.
#pragma once

#include <type_traits>
#include <utility>

#include <pipe/backend/cuda/core/accesses.hpp>
#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/chain.hpp>
#include <pipe/backend/cuda/core/kernel_list.hpp>
#include <pipe/backend/cuda/rows/radix_sort_rows.hpp>

namespace pp::cuda {

/// y[r] = table[ids[r]], zeros for an id of -1; then the epilogue.
///
/// shape: ids (R), table (V, C) -> y (R, C)
/// work:  a thread has one access of a row
/// cost:  a copy, bound by bytes
template <class P, int G>
struct lookup_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns;
  using base = row_accesses<P, G, columns>;
  using base::each;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    base::for_access(block, a, [&](extent row, int column) {
      extent const id = a.ids(g.in[0])[row];
      float v[each] = {};
      if (id >= 0) load<each>(a.at<T const>(g.in[1]) + id * columns + column, v);
      finish<P, G>(a, row, column, v);
    });
  }
};

/// The number of ids of a bag that are neither -1 nor its padding index, at least 1.
PIPE_HD PIPE_INLINE float count_ids(int const* ids, int n, int padding) {
  int found = 0;
  for (int i = 0; i < n; ++i) found += ids[i] >= 0 && ids[i] != padding;
  return float(found < 1 ? 1 : found);
}

/// y[r] = the sum or the mean of table[id] over the ids of row r that are neither -1 nor the
/// padding index; then the epilogue. No other memory holds the rows of the table.
///
/// shape: ids (R, I), table (V, C) -> y (R, C)
/// law:   a sum adds the rows in the order of the ids; a mean then divides the sum
/// work:  a thread has one access of a row of y, with `batch` loads in flight
/// cost:  reads R * I * C elements, bound by bytes
template <class P, int G>
struct bag_kernel : row_accesses<P, G, group_of<P, G>::value.columns> {
  using T = typename P::element;
  static constexpr int columns = group_of<P, G>::value.columns, batch = 4;
  static constexpr int count = group_of<P, G>::value.attributes.lookup().ids,
                       padding = group_of<P, G>::value.attributes.lookup().padding;
  static constexpr bool is_mean = group_of<P, G>::value.attributes.lookup().is_mean;
  using base = row_accesses<P, G, columns>;
  using base::each;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    constexpr detail::group g = group_of<P, G>::value;
    base::for_access(block, a, [&](extent row, int column) {
      int const* const ids = a.ids(g.in[0]) + row * count;
      T const* const table = a.at<T const>(g.in[1]) + column;
      float sum[each] = {};
      for (int at = 0; at < count; at += batch) {
        float v[batch][each] = {};
        bool is_real[batch];
        PIPE_UNROLL
        for (int k = 0; k < batch; ++k) {
          int const id = at + k < count ? ids[at + k] : -1;
          is_real[k] = id >= 0 && id != padding;
          if (is_real[k]) load<each>(table + extent(id) * columns, v[k]);
        }
        PIPE_UNROLL
        for (int k = 0; k < batch; ++k) {
          PIPE_UNROLL
          for (int i = 0; i < each; ++i) sum[i] = is_real[k] ? sum[i] + v[k][i] : sum[i];
        }
      }
      if constexpr (is_mean) {
        float const real = count_ids(ids, count, padding);
        PIPE_UNROLL
        for (int i = 0; i < each; ++i) sum[i] /= real;
      }
      finish<P, G>(a, row, column, sum);
    });
  }
};

/// Constants and functions that the kernels of a table's gradient share. A row here is an id; each
/// `ids` neighbouring rows, 1 for a lookup, have one row of dy.
template <class P, int G>
struct lookup_gradient {
  using T = typename P::element;
  static constexpr int bound = group_of<P, G>::value.attributes.lookup().vocabulary,
                       ids = group_of<P, G>::value.attributes.lookup().ids,
                       padding = group_of<P, G>::value.attributes.lookup().padding;
  static constexpr bool is_mean = group_of<P, G>::value.attributes.lookup().is_mean;
  static constexpr int bags = group_of<P, G>::value.rows * P::samples, rows = bags * ids;
  static constexpr int columns = group_of<P, G>::value.columns, each = access_width<T>(columns);
  static constexpr int vectors = columns / each, ids_index = group_of<P, G>::value.in[1];
  using order = radix_sort_rows<rows, bound>;
  static constexpr int order_kernels = 2 * order::passes;

  /// The rows of a chunk of n rows: at most 16 times as many chunks as a chunk has rows, so that a
  /// sequence of all rows is joined in time, by 8 warps.
  static constexpr int chunk_for(int n) {
    int length = 16;
    while (16l * length * length < n) length *= 2;
    return length;
  }
  static constexpr int chunk = chunk_for(rows), chunks = (rows + chunk - 1) / chunk;

  /// The sum of a chunk's part of a sequence of equal ids that spans chunks. which = 0: the chunk's
  /// first sequence, which began in an earlier chunk; 1: its last sequence, which began in this
  /// chunk and continues.
  PIPE_HD static float* partial(arguments const& a, extent chunk_index, int which) {
    return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + order::bytes) +
           (2 * chunk_index + which) * columns;
  }
  static constexpr long partial_bytes = 2l * chunks * columns * long(sizeof(float));
  /// The number of ids by which the row of dy of a mean is divided, behind the sums of chunks.
  PIPE_HD static float* divisors(arguments const& a) {
    return reinterpret_cast<float*>(static_cast<char*>(a.workspace) + order::bytes + partial_bytes);
  }
  static constexpr long workspace_bytes =
      order::bytes + partial_bytes + (is_mean ? long(bags) * long(sizeof(float)) : 0);

  template <int Count>
  PIPE_HD PIPE_INLINE static void finish_sum(arguments const& a, extent id, int column,
                                             float (&sum)[Count]) {
    constexpr detail::group g = group_of<P, G>::value;
    float* const to = a.at<float>(g.out[0]) + id * columns + column;
    if (a.accumulate) {
      float before[Count];
      load<Count>(to, before);
      PIPE_UNROLL
      for (int i = 0; i < Count; ++i) sum[i] += before[i];
    }
    save<Count>(to, sum);
  }
};

/// Kernel Index of the sort of rows by id.
template <class P, int G, int Index, class Of = lookup_gradient<P, G>>
using order_rows_kernel = std::conditional_t<
    Index % 2 == 0, count_digits_kernel<Of::rows, Of::bound, Of::ids_index, Of::padding, Index / 2>,
    place_rows_kernel<Of::rows, Of::bound, Of::ids_index, Of::padding, Index / 2>>;

/// Zeros for the gradients of ids that no row has, unless gradients are accumulated.
///
/// shape: sorted ids (R) -> gradient (V, C), rows of absent ids
/// work:  a block has 32 ids, each looked up by a binary search
template <class P, int G>
struct clear_absent_kernel {
  using common = lookup_gradient<P, G>;
  static constexpr int threads = 256, band = 32, each = access_width<float>(common::columns);
  static constexpr extent blocks = (common::bound + band - 1) / band;
  using state = nothing;
  struct shared {
    bool absent[band];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    if (a.accumulate) return;
    constexpr detail::group g = group_of<P, G>::value;
    constexpr int vectors = common::columns / each;
    int const first = int(block.position()) * band;
    block.phase([&](int thread, state&) {
      int const id = first + thread;
      if (thread >= band) return;
      int const* const keys = common::order::keys(a.workspace);
      int low = 0, high = common::rows;  // the range with the first key >= id
      while (low < high) {
        int const middle = low + (high - low) / 2;
        if (keys[middle] < id)
          low = middle + 1;
        else
          high = middle;
      }
      block.shared().absent[thread] =
          id < common::bound && (low == common::rows || keys[low] != id);
    });
    block.part([&](int thread, state&) {
      float const zeros[each] = {};
      for (int k = thread; k < band * vectors; k += threads)
        if (block.shared().absent[k / vectors])
          save<each>(a.at<float>(g.out[0]) + extent(first + k / vectors) * common::columns +
                         k % vectors * each,
                     zeros);
    });
  }
};

/// The number of ids of each bag whose mean is taken.
///
/// shape: ids (bags, I) -> divisors (bags) in the workspace
/// work:  a thread has a bag
template <class P, int G>
struct count_bags_kernel {
  using common = lookup_gradient<P, G>;
  static constexpr int threads = 256;
  static constexpr extent blocks = (common::bags + threads - 1) / threads;
  static constexpr long workspace_bytes = common::workspace_bytes;
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state&) {
      extent const bag = block.position() * threads + thread;
      if (bag < common::bags)
        common::divisors(a)[bag] =
            count_ids(a.ids(common::ids_index) + bag * common::ids, common::ids, common::padding);
    });
  }
};

/// The sums of the sequences of equal ids in each chunk of the sorted rows.
///
/// shape: dy (R, C), sorted ids (R) and rows (R) -> gradient (V, C) for sequences inside a chunk,
///        parts (chunks, 2, C) in the workspace for sequences that span chunks
/// work:  a thread has one access of columns of a chunk, rows ascending, with `batch` loads in
///        flight
/// cost:  reads R * C elements in the order of the ids, bound by bytes
template <class P, int G>
struct sum_chunks_kernel {
  using T = typename P::element;
  using common = lookup_gradient<P, G>;
  static constexpr int threads = 128, each = common::each, batch = 32 / each < 8 ? 32 / each : 8;
  static_assert(common::chunk % batch == 0);  // so only the last chunk ends within a batch
  static constexpr extent items = extent(common::chunks) * common::vectors;
  static constexpr extent blocks = (items + threads - 1) / threads;
  static constexpr long workspace_bytes = common::workspace_bytes;
  using state = nothing;
  using shared = nothing;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state&) {
      extent const item = block.position() * threads + thread;
      if (item < items) sum(a, int(item / common::vectors), int(item % common::vectors) * each);
    });
  }

 private:
  PIPE_HD PIPE_INLINE static void sum(arguments const& a, int chunk, int column) {
    constexpr detail::group g = group_of<P, G>::value;
    int const* const keys = common::order::keys(a.workspace);
    int const* const rows = common::order::rows(a.workspace);
    T const* const dy = a.at<T const>(g.in[0]) + column;
    int const begin = chunk * common::chunk;
    int const end = begin + common::chunk < common::rows ? begin + common::chunk : common::rows;
    int key = keys[begin];
    if (key == common::bound) return;
    bool began_before = begin > 0 && keys[begin - 1] == key;
    float total[each] = {};
    for (int at = begin; at < end; at += batch) {
      int next[batch];
      float v[batch][each] = {};
      PIPE_UNROLL
      for (int k = 0; k < batch; ++k) {  // many loads in flight
        next[k] = at + k < end ? keys[at + k] : int(common::bound);
        if (next[k] != common::bound) {
          extent const bag = rows[at + k] / common::ids;
          load<each>(dy + bag * common::columns, v[k]);
          if constexpr (common::is_mean) {
            float const count = common::divisors(a)[bag];
            for (int i = 0; i < each; ++i) v[k][i] /= count;
          }
        }
      }
      PIPE_UNROLL
      for (int k = 0; k < batch; ++k) {
        if (next[k] != key) {  // all keys behind a key of `bound` are `bound`
          close(a, chunk, column, key, began_before, false, total);
          began_before = false;
          key = next[k];
          for (int i = 0; i < each; ++i) total[i] = 0;
        }
        for (int i = 0; i < each; ++i) total[i] += v[k][i];
      }
    }
    if (key != common::bound)
      close(a, chunk, column, key, began_before, end < common::rows && keys[end] == key, total);
  }

  PIPE_HD PIPE_INLINE static void close(arguments const& a, int chunk, int column, int key,
                                        bool began_before, bool goes_on, float (&total)[each]) {
    if (began_before || goes_on)
      save<each>(common::partial(a, chunk, began_before ? 0 : 1) + column, total);
    else
      common::finish_sum(a, key, column, total);
  }
};

/// The gradients of ids whose sequence spans chunks: sums of the parts.
///
/// shape: parts (chunks, 2, C) -> gradient (V, C), rows of these ids
/// work:  a block has the sequence that begins in a chunk, and some columns; each of 8 warps adds a
///        range of the parts, then one warp adds the sums of the warps in order
template <class P, int G>
struct join_chunks_kernel {
  using common = lookup_gradient<P, G>;
  static constexpr int warps = 8, threads = warps * warp_size,
                       each = access_width<float>(common::columns);
  static constexpr int slices = (common::columns / each + warp_size - 1) / warp_size;
  static constexpr extent blocks = extent(common::chunks) * slices;
  using state = nothing;
  struct shared {
    float sum[warps][warp_size][each];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    int const first = int(block.position() / slices), slice = int(block.position() % slices);
    int const* const keys = common::order::keys(a.workspace);
    int const begin = first * common::chunk, end = begin + common::chunk;
    if (end >= common::rows) return;
    int const key = keys[end];
    if (key == common::bound || keys[end - 1] != key || (begin > 0 && keys[begin - 1] == key))
      return;
    int last = first + 1;  // the last chunk that begins with this key
    for (int after = common::chunks; after - last > 1;) {
      int const middle = last + (after - last) / 2;
      if (keys[middle * common::chunk] == key)
        last = middle;
      else
        after = middle;
    }
    int const parts = last - first + 1;
    auto const column_of = [slice](int thread) {
      return (slice * warp_size + thread % warp_size) * each;
    };
    block.phase([&](int thread, state&) {
      if (column_of(thread) >= common::columns) return;
      int const warp = thread / warp_size;
      float total[each] = {};
      for (int i = parts * warp / warps; i < parts * (warp + 1) / warps; ++i) {
        float v[each];
        load<each>(common::partial(a, first + i, i == 0 ? 1 : 0) + column_of(thread), v);
        for (int k = 0; k < each; ++k) total[k] += v[k];
      }
      for (int k = 0; k < each; ++k) block.shared().sum[warp][thread % warp_size][k] = total[k];
    });
    block.part([&](int thread, state&) {
      if (thread >= warp_size || column_of(thread) >= common::columns) return;
      float total[each] = {};
      for (int w = 0; w < warps; ++w)
        for (int k = 0; k < each; ++k) total[k] += block.shared().sum[w][thread][k];
      common::finish_sum(a, key, column_of(thread), total);
    });
  }
};

template <>
struct kernel_of<op_kind::lookup> : one_kernel<lookup_kernel> {};

template <>
struct kernel_of<op_kind::bag> : one_kernel<bag_kernel> {};

/// The kernels of a table's gradient, behind the kernels Before, which sort the rows.
template <class P, int G, class... Before>
constexpr auto lower_sums_of_rows() {
  if constexpr (lookup_gradient<P, G>::is_mean)
    return kernel_list<Before..., clear_absent_kernel<P, G>, count_bags_kernel<P, G>,
                       sum_chunks_kernel<P, G>, join_chunks_kernel<P, G>>{};
  else
    return kernel_list<Before..., clear_absent_kernel<P, G>, sum_chunks_kernel<P, G>,
                       join_chunks_kernel<P, G>>{};
}
template <class P, int G, int... Is>
constexpr auto lower_lookup_gradient(std::integer_sequence<int, Is...>) {
  return lower_sums_of_rows<P, G, order_rows_kernel<P, G, Is>...>();
}

template <>
struct kernel_of<op_kind::lookup_gradient> {
  template <class P, int G>
  using list = decltype(lower_lookup_gradient<P, G>(
      std::make_integer_sequence<int, lookup_gradient<P, G>::order_kernels>{}));
};
template <>
struct kernel_of<op_kind::bag_gradient> : kernel_of<op_kind::lookup_gradient> {};

}  // namespace pp::cuda
