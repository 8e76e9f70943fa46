// SPDX-License-Identifier: BSL-1.0
//
// The kernels that join the leaves of a mini-batch (see runtime/leaves.hpp): a leaf's gradients, or
// its loss, with the partial sums of the leaves before it.
#pragma once

#include <pipe/backend/cuda/update/flat_parameters.hpp>

namespace pp::cuda {

/// to = ((own + level 0) + level 1) + ..., over `joined` levels.
///
/// work: one pass, bound by bytes: 8 per element, and 4 more for each level
struct join_elements {
  float* to = nullptr;
  float const* own = nullptr;  ///< null: zeros, of a leaf without samples
  float const* levels = nullptr;
  extent apart = 0;  ///< of one level from the next
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

/// The same of the loss, in one block: losses[0] = the sum of all losses, joined.
///
/// shape: losses (rows), levels (joined + 1, or joined of the last leaf) -> losses (1)
/// law:   losses are added as judge_kernel adds them
struct join_losses_kernel {
  struct arguments {
    double* losses = nullptr;  ///< of every micro-batch
    extent rows = 0;
    double* levels = nullptr;
    int joined = 0;
    bool is_kept = false;  ///< the result is also the partial sum of the next level
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
