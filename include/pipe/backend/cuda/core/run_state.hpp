// SPDX-License-Identifier: BSL-1.0
//
// The numbers that differ between two runs of the same launches: a struct in device memory,
// uploaded at the start of a run. Launches have a pointer to it, so their own arguments never
// change, and a CUDA graph of them can be replayed.
#pragma once

#include <type_traits>

#include <pipe/backend/launch_context.hpp>
#include <pipe/graph/further_loss.hpp>

namespace pp::cuda {

/// The numbers of one run over a mini-batch. The optimizer's coefficients follow it in memory: one
/// set for each range of parameters that is updated.
struct run_state : detail::random_context {  // of the mini-batch's first sample
  /// Factor of the gradient of the loss: one over the number of terms in the mini-batch's mean.
  float loss_scale = 0;
  float clip_value = 0;              ///< limit of single gradients, which are not scaled yet
  float average_amount = 0;          ///< how far averages of parameters approach them
  double loss_terms = 1;             ///< the loss is the mean over this number of terms
  double gradient_scale = 1;         ///< factor of gradients, beside the clipping's
  double clip_norm = 0;              ///< bound of the norm of all gradients; 0: no clipping
  double samples = 0;                ///< since the last update: sums of buffers are divided by it
  detail::further_losses further{};  ///< those of the model beside the first; none in inference
};
static_assert(std::is_trivially_copyable_v<run_state> && sizeof(run_state) == 200);

}  // namespace pp::cuda
