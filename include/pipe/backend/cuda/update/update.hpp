// SPDX-License-Identifier: BSL-1.0
//
// The update of parameters, in one kernel over all of a rank's memory: an optimizer's formula for
// single elements, the host's functor, with what the outcome of the step says about the gradients
// read from the device's memory; and the small kernels around it. Optimizers of whole tensors are
// in whole_tensors.hpp.
//
// Each is a functor for flat_kernel: bytes bound all of them, 28 per parameter for AdamW and 2
// more for a 16-bit copy.
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

/// One step of an optimizer of single elements. The weights are float; `Copy` is the type of
/// another copy of them, which kernels compute with, or void.
///
/// needs: coefficients are prepared with a gradient scale of 1: gradients are multiplied by the
///        outcome's factor before
/// law:   an outcome that is not sound leaves everything as it is
/// note:  the host prepares coefficients for its own count of steps, and hears of a rejected step
///        when it reads the outcome: until then Adam's corrections are those of one step later
template <class Optimizer, class Copy = void>
struct optimizer_step {
  using coefficients = typename Optimizer::template coefficients<float>;
  /// In the device's memory, behind the run_state; a range's group says which.
  coefficients const* of_group = nullptr;
  float* weights = nullptr;
  float const* gradients = nullptr;
  float* first = nullptr;  ///< the optimizer's states, as many as it has
  float* second = nullptr;
  Copy* copy = nullptr;
  step_outcome const* judged = nullptr;  ///< null: sound, factor 1

  PIPE_HD bool is_wanted() const { return is_sound(judged); }

  /// The step on the parameters of a group.
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

/// x within [-limit, limit], the run's clip_value, and NaN stays NaN. Scaled gradients have a
/// scaled limit.
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

/// Averages of weights: average += amount * (x - average), the run's average_amount, after a sound
/// step.
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

/// The rule of a buffer; of a variance also how many elements its sums are behind those of its
/// mean.
struct buffer_rule {
  detail::commit_rule rule;
  extent behind_mean = 0;
};

/// Buffers follow their sums, after a sound step. A range's group says which rule.
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

/// to += from: gradients of a parameter that is used in two places; gradients and, in double,
/// losses of replicas.
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

/// to = from in another type: 16-bit copies of weights that something else than a step has changed.
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
