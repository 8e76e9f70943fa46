// SPDX-License-Identifier: BSL-1.0
//
// The kernels that add the gradients, or the loss, of an accumulation of a mini-batch to the
// partial sums of earlier accumulations; see runtime/sum_tree.hpp.
#pragma once

#include <pipe/backend/cuda/update/flat_parameters.hpp>

namespace pp::cuda {

/// to = ((own + level 0) + level 1) + ..., over `joined` levels.
///
/// work: one pass, bound by bytes: 8 per element, and 4 more for each level
struct join_elements {
  float* to = nullptr;
  float const* own = nullptr;  ///< null: zeros, for an accumulation without samples
  float const* levels = nullptr;
  extent apart = 0;  ///< elements from a level to the next
  int joined = 0;

  PIPE_HD bool is_wanted() const { return true; }
  template <int Count>
  PIPE_HD PIPE_INLINE void run(extent at, int) const {
    float v[Count]{}, more[Count];
    if (own != nullptr) load<Count>(own + at, v);
    for (int level = 0; level < joined; ++level) {
      load<Count>(levels + level * apart + at, more);
      PIPE_UNROLL
      for (int k = 0; k < Count; ++k) v[k] = v[k] + more[k];
    }
    save<Count>(to + at, v);
  }
};

/// The same for the loss, in one block: losses[0] = (sum of all losses + level 0) + level 1 + ...
///
/// shape: losses (rows), levels (joined + 1; for the last accumulation joined) -> losses (1)
/// law:   losses are added in the order of judge_kernel
struct join_losses_kernel {
  struct arguments {
    double* losses = nullptr;  ///< of all rows of all micro-batches
    extent rows = 0;
    double* levels = nullptr;
    int joined = 0;
    bool is_kept = false;  ///< whether the result is also written as level `joined`
  };
  static constexpr int threads = 256;
  static extent blocks(arguments const&) { return 1; }
  using state = sum_squares_kernel::state;
  using shared = sum_squares_kernel::shared;

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part(
        [&](int thread, state& mine) { mine.sum = sum_of_every_256th(a.losses, thread, a.rows); });
    add_threads(
        block, block.shared().of_warp, [](state& s) -> double& { return s.sum; },
        [&](double total) {
          for (int level = 0; level < a.joined; ++level) total += a.levels[level];
          if (a.is_kept) a.levels[a.joined] = total;
          a.losses[0] = total;
        });
  }
};

}  // namespace pp::cuda
