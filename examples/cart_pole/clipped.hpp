// SPDX-License-Identifier: BSL-1.0
//
// A loss of label probabilities with two further targets, as the how-to shows it.
#pragma once

#include <pipe/pipe.hpp>

using namespace pp;

// [label]
/// Proximal policy optimization (Schulman et al., 2017, equation 7): labels are the actions that
/// were taken, `old` the log-probabilities that they were taken with.
struct Clipped : LabelLoss<Clipped, Target<"old">, Target<"advantage">> {
  template <class T>
  PIPE_HD static PIPE_INLINE T value(T l, T old, T advantage) {
    T const ratio = math::exp(l - old), limit = advantage > T(0) ? T(1.2) : T(0.8);
    return -advantage * (is_outside(ratio, advantage) ? limit : ratio);
  }
  template <class T>
  PIPE_HD static PIPE_INLINE T slope(T l, T old, T advantage) {
    T const ratio = math::exp(l - old);
    return is_outside(ratio, advantage) ? T(0) : -advantage * ratio;
  }

 private:
  template <class T>
  PIPE_HD static PIPE_INLINE bool is_outside(T ratio, T advantage) {
    return advantage > T(0) ? ratio > T(1.2) : ratio < T(0.8);
  }
};
// [/label]
