// SPDX-License-Identifier: BSL-1.0
//
// Clipping by the global norm: the factor on a step's gradients when the optimizer reads them. Host
// threads and device kernels evaluate this one formula.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// The factor that reduces gradients of global norm `norm` to at most `most`; 1 if they are within
/// it. most = 0: no limit.
///
/// law:    clip_factor(norm, most) * norm <= most, where there is a limit
/// source: torch.nn.utils.clip_grad_norm_, whose 1e-6 guards its division
PIPE_HD constexpr double clip_factor(double norm, double most) {
  return most > 0 && norm > most ? most / (norm + 1e-6) : 1;
}

/// The norm and the factor of a step's gradients, once all are complete.
struct gradient_outcome {
  double norm = 0;    ///< global, before any clipping
  double factor = 1;  ///< on each stored gradient: clipping times `scale`
};

/// The outcome from sums of squares of the stored gradients, `square` before and `clamped_square`
/// after clipping by value (equal without it). The true gradients are `scale` times the stored
/// ones.
///
/// law: `norm` is that before any clipping; the bound holds after clipping by value
PIPE_HD inline gradient_outcome outcome_of(double square, double clamped_square, double scale,
                                           double clip_norm) {
  double const clamped_norm = libm::sqrt(clamped_square) * scale;
  return {libm::sqrt(square) * scale, clip_factor(clamped_norm, clip_norm) * scale};
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
