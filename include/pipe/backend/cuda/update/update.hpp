// SPDX-License-Identifier: BSL-1.0
//
// The update of parameters by an optimizer of single elements, in one kernel over all of a rank's
// parameters, and the small kernels around it. The update applies the optimizer's formula, which
// the host uses too, and reads the outcome of the step from the device's memory. Optimizers of
// whole tensors are in whole_tensors.hpp.
//
// Each kernel is a functor for flat_kernel. All are bound by bytes: AdamW reads and writes 28 per
// parameter, and 2 more for a 16-bit copy.
#pragma once

#include <type_traits>

#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/backend/cuda/update/step_outcome.hpp>
#include <pipe/base/math.hpp>
#include <pipe/graph/commit.hpp>

namespace pp::cuda {

PIPE_HD PIPE_INLINE bool is_sound(step_outcome const* judged) {
  return judged == nullptr || judged->sound != 0;
}
PIPE_HD PIPE_INLINE float factor_of(step_outcome const* judged) {
  return judged == nullptr ? 1.0f : judged->factor;
}

/// One step of an optimizer of single elements. The weights are float; `Copy` is the type of a
/// second copy of the weights, which kernels compute with, or void.
///
/// needs: coefficients are prepared with a gradient scale of 1, since the kernel multiplies
///        gradients by the outcome's factor first
/// law:   an outcome that is not sound leaves everything as it is
/// note:  the host prepares coefficients for the steps that it has counted, and learns of a
///        rejected step when it reads the outcome; until then Adam's bias corrections are for one
///        step too many
template <class Optimizer, class Copy = void>
struct optimizer_step {
  using coefficients = typename Optimizer::template coefficients<float>;
  /// In the device's memory, behind the run_state; indexed by the group of a range.
  coefficients const* of_group = nullptr;
  float* weights = nullptr;
  float const* gradients = nullptr;
  float* first = nullptr;  ///< the optimizer's states: none, one or two
  float* second = nullptr;
  Copy* copy = nullptr;
  step_outcome const* judged = nullptr;  ///< null: sound, factor 1

  PIPE_HD bool is_wanted() const { return is_sound(judged); }

  /// The step on the parameters of one group.
  struct group_step {
    optimizer_step const& of;
    coefficients with;
    float factor;

    template <int Count>
    PIPE_HD PIPE_INLINE void run(extent at, int) const {
      static_assert(Optimizer::states <= 2);
      float w[Count], g[Count], m[Count], v[Count];
      load<Count>(of.weights + at, w);
      load<Count>(of.gradients + at, g);
      if constexpr (Optimizer::states > 0) load<Count>(of.first + at, m);
      if constexpr (Optimizer::states > 1) load<Count>(of.second + at, v);
      PIPE_UNROLL
      for (int k = 0; k < Count; ++k) {
        float const scaled = g[k] * factor;
        if constexpr (Optimizer::states == 0)
          w[k] = Optimizer::apply(with, w[k], scaled);
        else if constexpr (Optimizer::states == 1)
          w[k] = Optimizer::apply(with, w[k], scaled, m[k]);
        else
          w[k] = Optimizer::apply(with, w[k], scaled, m[k], v[k]);
      }
      save<Count>(of.weights + at, w);
      if constexpr (Optimizer::states > 0) save<Count>(of.first + at, m);
      if constexpr (Optimizer::states > 1) save<Count>(of.second + at, v);
      if constexpr (!std::is_void_v<Copy>) save<Count>(of.copy + at, w);
    }
  };
  PIPE_HD PIPE_INLINE group_step for_group(int group) const {
    return {*this, of_group[group], factor_of(judged)};
  }
};

/// Clamps x to [-limit, limit], where limit is the run's clip_value, times the loss scale if
/// gradients are scaled; NaN stays NaN.
struct clamp_elements {
  float* x = nullptr;
  run_state const* state = nullptr;
  loss_scaling const* scaling = nullptr;  ///< null: the loss is not scaled

  PIPE_HD bool is_wanted() const { return true; }
  template <int Count>
  PIPE_HD PIPE_INLINE void run(extent at, int group) const {
    if (group != 0) return;  // sums of buffers
    float const limit = state->clip_value;
    float const most = scaling == nullptr ? limit : limit * scaling->scale;
    float v[Count];
    load<Count>(x + at, v);
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k) v[k] = math::clamped(v[k], most);
    save<Count>(x + at, v);
  }
};

/// Averages of weights, after a sound step: average += amount * (x - average), where amount is the
/// run's average_amount.
struct approach_elements {
  float* average = nullptr;
  float const* x = nullptr;
  run_state const* state = nullptr;
  step_outcome const* judged = nullptr;

  PIPE_HD bool is_wanted() const { return is_sound(judged); }
  template <int Count>
  PIPE_HD PIPE_INLINE void run(extent at, int) const {
    float const amount = state->average_amount;
    float v[Count], target[Count];
    load<Count>(average + at, v);
    load<Count>(x + at, target);
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k) v[k] = v[k] + amount * (target[k] - v[k]);
    save<Count>(average + at, v);
  }
};

/// The rule of a buffer; for a variance, also the distance of its sums behind the sums of its mean,
/// in elements.
struct buffer_rule {
  detail::commit_rule rule;
  extent behind_mean = 0;
};

/// Commits the sums of buffers, after a sound step, by the rule that a range's group is the number
/// of.
struct commit_elements {
  float* buffers = nullptr;
  float const* sums = nullptr;
  buffer_rule const* rules = nullptr;
  run_state const* state = nullptr;
  step_outcome const* judged = nullptr;

  PIPE_HD bool is_wanted() const { return is_sound(judged); }
  template <int Count>
  PIPE_HD PIPE_INLINE void run(extent at, int group) const {
    double const samples = state->samples;
    buffer_rule const by = rules[group];
    float v[Count], sum[Count], differences[Count];
    load<Count>(buffers + at, v);
    load<Count>(sums + at, sum);
    load<Count>(sums + at - by.behind_mean, differences);
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k)
      v[k] = detail::committed(by.rule, v[k], sum[k], samples, differences[k]);
    save<Count>(buffers + at, v);
  }
};

/// to += from: for gradients of a parameter that is used in two places, for gradients of replicas
/// and, in double, for losses of replicas.
template <class T>
struct add_elements {
  T* to = nullptr;
  T const* from = nullptr;

  PIPE_HD bool is_wanted() const { return true; }
  template <int Count>
  PIPE_HD PIPE_INLINE void run(extent at, int) const {
    T v[Count], more[Count];
    load<Count>(to + at, v);
    load<Count>(from + at, more);
    PIPE_UNROLL
    for (int k = 0; k < Count; ++k) v[k] = v[k] + more[k];
    save<Count>(to + at, v);
  }
};

/// to = from in another type: the 16-bit copies of weights that were changed outside of a step.
template <class To>
struct convert_elements {
  To* to = nullptr;
  float const* from = nullptr;

  PIPE_HD bool is_wanted() const { return true; }
  template <int Count>
  PIPE_HD PIPE_INLINE void run(extent at, int) const {
    float v[Count];
    load<Count>(from + at, v);
    save<Count>(to + at, v);
  }
};

}  // namespace pp::cuda
