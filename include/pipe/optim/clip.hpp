// SPDX-License-Identifier: BSL-1.0
//
// Clipping by the global norm: the factor by which a step's gradients are multiplied when the
// optimizer reads them. Threads and device kernels evaluate this one formula.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>

namespace pp::detail {

/// The factor that brings gradients of global norm `norm` to at most `most`; 1 if they are within
/// it, or if `most` is 0, which means no limit.
///
/// law:    clip_factor(norm, most) * norm <= most, where there is a limit
/// source: torch.nn.utils.clip_grad_norm_, whose 1e-6 guards its division
PIPE_HD constexpr double clip_factor(double norm, double most) {
  return most > 0 && norm > most ? most / (norm + 1e-6) : 1;
}

/// The gradients of a step, once all are complete.
struct gradient_outcome {
  double norm = 0;    ///< global, before any clipping
  double factor = 1;  ///< for each gradient as it is stored: clipping times `scale`
};

/// `square` and `clamped_square` are sums of squares of the gradients as they are stored, before
/// and after clipping by value (the same where none is done); the true gradients are `scale` times
/// the stored ones.
PIPE_HD inline gradient_outcome outcome_of(double square, double clamped_square, double scale,
                                           double clip_norm) {
  double const clamped_norm = libm::sqrt(clamped_square) * scale;
  return {libm::sqrt(square) * scale, clip_factor(clamped_norm, clip_norm) * scale};
}

}  // namespace pp::detail
