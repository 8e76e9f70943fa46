// SPDX-License-Identifier: BSL-1.0
//
// The outcome of a step, decided by one small kernel on the device after all gradients are
// complete: whether the step is sound, by what factor gradients are scaled, and the next loss scale
// of 16-bit training. Later kernels read the outcome from the device's memory, so the host waits
// for nothing, and may copy the outcome at any time.
#pragma once

#include <pipe/backend/cuda/core/block.hpp>
#include <pipe/backend/cuda/update/flat_parameters.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/optim/clip.hpp>

namespace pp::cuda {

/// The outcome of a step, in the device's memory: one for all ranks.
struct step_outcome {
  double loss = 0;        ///< of the mini-batch; with several losses, their weighted sum
  double norm = 0;        ///< of all gradients, before clipping
  float factor = 1;       ///< factor of gradients in updates: of clipping, of the mean, of the loss
                          ///< scale
  float loss_scale = 1;   ///< the loss scale in the gradients
  int sound = 1;          ///< 1: loss and norm are finite; 0: no update
  long long updates = 0;  ///< number of sound steps
  long long rejected = 0;                ///< number of other steps
  double losses[detail::most_losses]{};  ///< the value of each loss
};

/// The loss scale of fp16, whose range of exponents is small: the loss is multiplied by `scale`,
/// and so are all gradients until updates use them. The scale is halved when a gradient is not
/// finite, and doubled after 2000 steps in a row in which all were. In the device's memory,
/// initially with these values.
///
/// source: torch.amp.GradScaler, with its default settings
struct loss_scaling {
  float scale = 65536;
  int sound_steps = 0;  ///< since the scale last changed

  static constexpr float growth = 2, backoff = 0.5f;
  static constexpr int interval = 2000;

  /// law: the result of torch._amp_update_scale_
  PIPE_HD void step(bool finite) {
    if (!finite) {
      scale *= backoff;
      sound_steps = 0;
    } else if (++sound_steps == interval) {
      if (libm::isfinite(scale * growth)) scale *= growth;
      sound_steps = 0;
    }
  }
};

/// The decision about a step, in one block: each loss, the sum of its rows' losses / its number of
/// terms; the norm, sqrt(sum of squares) without the loss scale; the factor of clipping; and
/// whether loss and norm are finite.
///
/// shape: squares, clamped (parameters), losses (model's losses, rows) -> one step_outcome, and the
///        next loss scale
/// law:   each thread adds every 256th number, then threads are added as by add_threads; further
///        losses are added in order: equal bits on every GPU
/// needs: all gradients have been clipped by value, if they are to be, and their squares summed
struct judge_kernel {
  struct arguments {
    double const* squares = nullptr;  ///< of every parameter's gradient, in the order of the model
    double const* clamped = nullptr;  ///< the same after clipping by value; null: no such clipping
    extent parameters = 0;
    double const* losses = nullptr;  ///< of every row, for the first loss
    extent rows = 0;
    extent apart = 0;  ///< elements from one loss's rows to the next loss's
    run_state const* state = nullptr;
    loss_scaling* scaling = nullptr;  ///< null: the loss is not scaled
    bool completes =
        true;  ///< a step; false: more gradients may follow, of a loss with the same scale
    step_outcome* out = nullptr;
  };
  static constexpr int threads = 256;
  static extent blocks(arguments const&) { return 1; }
  struct state {
    double square, clamped, loss;
  };
  struct shared {
    double of_warp[threads / warp_size];
    double square, clamped;
  };

  template <class Block>
  PIPE_HD static void run(Block& block, arguments const& a) {
    block.part([&](int thread, state& mine) {
      mine = {sum_of_every_256th(a.squares, thread, a.parameters),
              a.clamped != nullptr ? sum_of_every_256th(a.clamped, thread, a.parameters) : 0,
              sum_of_every_256th(a.losses, thread, a.rows)};
    });
    auto& s = block.shared();
    add_threads(
        block, s.of_warp, [](state& x) -> double& { return x.square; },
        [&](double total) { s.square = total; });
    add_threads(
        block, s.of_warp, [](state& x) -> double& { return x.clamped; },
        [&](double total) { s.clamped = total; });
    add_threads(
        block, s.of_warp, [](state& x) -> double& { return x.loss; },
        [&](double total) {
          decide(a, s.square, a.clamped != nullptr ? s.clamped : s.square, total);
        });
  }

 private:
  PIPE_HD static void decide(arguments const& a, double square, double left_square, double loss) {
    run_state const& state = *a.state;
    double const scale = a.scaling != nullptr ? state.gradient_scale / double(a.scaling->scale)
                                              : state.gradient_scale;
    detail::gradient_outcome const found =
        detail::outcome_of(square, left_square, scale, state.clip_norm);
    double const norm = found.norm;
    step_outcome& v = *a.out;
    v.losses[0] = loss / state.loss_terms;
    for (int i = 0; i < state.further.count; ++i) {
      double const* const row = a.losses + (i + 1) * a.apart;
      double sum = 0;
      for (extent k = 0; k < a.rows; ++k) sum += row[k];
      v.losses[i + 1] = sum / detail::loss_divisor(state.further.items[i].counted);
    }
    v.loss = state.further.sum_of(v.losses);
    v.norm = norm;
    v.factor = float(found.factor);
    v.loss_scale = a.scaling != nullptr ? a.scaling->scale : 1;
    v.sound = libm::isfinite(norm) && libm::isfinite(v.loss) ? 1 : 0;
    (v.sound != 0 ? v.updates : v.rejected) += 1;
    bool const overflows = !libm::isfinite(norm);
    if (a.scaling != nullptr && (a.completes || overflows)) a.scaling->step(!overflows);
  }
};

}  // namespace pp::cuda
