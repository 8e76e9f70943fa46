// SPDX-License-Identifier: BSL-1.0
//
// The checks of a mini-batch that is in device memory, and the divisor of its loss. Only a few
// numbers of each block are copied to the host.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/core/warp.hpp>
#include <pipe/backend/value_check.hpp>

namespace pp::cuda {

/// The lesser of two indices, for reductions.
struct smaller {
  PIPE_HD PIPE_INLINE extent operator()(extent a, extent b) const { return a < b ? a : b; }
};

/// For each array and each of `check_blocks` blocks: the index of the first value out of range that
/// the block has read, or the number of all values, and the number of ids that are not padding.
///
/// shape: arrays of any lengths -> found[arrays][check_blocks]
struct check_values_kernel {
  static constexpr int threads = 256, check_blocks = 64, most = detail::most_checks;
  struct arguments {
    detail::value_check of[most];
    int arrays = 0;
    detail::checked_values* found = nullptr;
  };
  static extent blocks(arguments const& a) { return extent(a.arrays) * check_blocks; }
  struct state {
    extent first, counted;
  };
  struct shared {
    extent first[threads / warp_size], counted[threads / warp_size];
  };
  static constexpr long found_bytes = long(sizeof(detail::checked_values)) * most * check_blocks;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    detail::value_check const& array = a.of[block.position() / check_blocks];
    block.part([&](int thread, state& mine) {
      mine = {array.count, 0};
      extent const begin = block.position() % check_blocks * threads + thread;
      if (array.are_ids)
        look(static_cast<int const*>(array.values), array.least_id, array.most_id, array.count,
             begin, mine);
      else
        look(static_cast<float const*>(array.values), array.least, array.most, array.count, begin,
             mine);
    });
    // Within each warp, then over the block's warps in shared memory.
    reduce_lanes(block, [](state& mine) -> extent& { return mine.first; }, smaller{});
    reduce_lanes(block, [](state& mine) -> extent& { return mine.counted; }, plus{});
    block.phase([&](int thread, state& mine) {
      if (thread % warp_size != 0) return;
      block.shared().first[thread / warp_size] = mine.first;
      block.shared().counted[thread / warp_size] = mine.counted;
    });
    // The host takes the minimum of the blocks' first indices, and adds the counts.
    block.part([&](int thread, state&) {
      if (thread != 0) return;
      extent first = array.count, counted = 0;
      for (extent const x : block.shared().first) first = smaller{}(first, x);
      for (extent const x : block.shared().counted) counted += x;
      a.found[block.position()] = {first, counted};
    });
  }

 private:
  /// Checks a thread's values, in ascending order.
  template <class T>
  PIPE_HD PIPE_INLINE static void look(T const* x, T least, T most_value, extent count,
                                       extent begin, state& mine) {
    for (extent i = begin; i < count; i += extent(check_blocks) * threads) {
      T const value = x[i];
      if (!(value >= least && value <= most_value) && i < mine.first) mine.first = i;
      if constexpr (std::is_same_v<T, int>) mine.counted += value >= 0;
    }
  }
};

/// The divisor of a loss whose terms have weights: the sum of the weights over all rows or
/// elements.
///
/// Ids: whether labels are ids; ClassWeights: the option of the loss, or void.
///
/// shape: labels (rows) of ids, or null; weights (rows), or null -> one double
/// law:   one thread adds in the order of rows, with the bits of the host
/// cost:  the time of one addition for each row, about 10 ns
template <bool Ids, class ClassWeights>
struct sum_weights_kernel {
  struct arguments {
    int const* labels = nullptr;
    float const* weights = nullptr;
    extent rows = 0;
    double columns = 1;  ///< terms in a row of targets
    double* to = nullptr;
  };
  static constexpr int threads = 256, each = 4, strip = threads * each;
  static extent blocks(arguments const&) { return 1; }
  struct state {
    double sum;
  };
  struct shared {
    double of[strip];
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int, state& mine) { mine.sum = 0; });
    // All threads fetch a strip of weights; one thread adds them.
    for (extent first = 0; first < a.rows; first += strip) {
      int const count = int(a.rows - first < strip ? a.rows - first : strip);
      block.phase([&](int thread, state&) {
        for (int i = thread; i < count; i += threads)
          block.shared().of[i] = weight_of(a, first + i);
      });
      block.phase([&](int thread, state& mine) {
        if (thread == 0)
          for (int i = 0; i < count; ++i) mine.sum += block.shared().of[i];
      });
    }
    block.part([&](int thread, state& mine) {
      if (thread == 0) *a.to = mine.sum;
    });
  }

 private:
  /// The weight of a row's terms; 0 for a label of -1. Exact: a float times a small integer.
  PIPE_HD PIPE_INLINE static double weight_of(arguments const& a, extent row) {
    double const weight = a.weights != nullptr ? double(a.weights[row]) : 1.0;
    if constexpr (Ids) {
      int const label = a.labels[row];
      if (label < 0) return 0;
      if constexpr (!std::is_void_v<ClassWeights>)
        return weight * ClassWeights::template of<double>(label);
      else
        return weight;
    } else {
      return weight * a.columns;
    }
  }
};

}  // namespace pp::cuda
