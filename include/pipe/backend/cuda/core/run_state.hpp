// SPDX-License-Identifier: BSL-1.0
//
// The numbers that differ between two runs of the same launches: a struct in device memory,
// uploaded at the start of a run. Launches have a pointer to this struct, so their arguments never
// change, and a CUDA graph of the launches can be replayed.
#pragma once

#include <type_traits>

#include <pipe/backend/launch_context.hpp>
#include <pipe/graph/further_loss.hpp>

namespace pp::cuda {

/// The numbers of one run over a mini-batch. In memory the optimizer's coefficients follow this
/// struct: a set for each range of parameters that is updated.
struct run_state : detail::random_context {  // for the mini-batch's first sample
  /// Factor of the gradient of the loss: 1 / number of terms in the mini-batch's mean loss.
  float loss_scale = 0;
  float clip_value = 0;              ///< limit of single gradients, which are not scaled yet
  float average_amount = 0;          ///< average += amount * (parameter - average)
  double loss_terms = 1;             ///< the loss is the mean over this number of terms
  double gradient_scale = 1;         ///< factor of gradients, besides the factor of clipping
  double clip_norm = 0;              ///< bound of the norm of all gradients; 0: no clipping
  double samples = 0;                ///< since the last update: sums of buffers are divided by it
  detail::further_losses further{};  ///< the losses after the first; none in inference
};
static_assert(std::is_trivially_copyable_v<run_state> && sizeof(run_state) == 200);

}  // namespace pp::cuda
