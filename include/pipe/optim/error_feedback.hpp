// SPDX-License-Identifier: BSL-1.0
//
// Error feedback for an optimizer whose gradients are one update old, as under PipeDream2BW: the
// step before moved by u(t-1) where, without the delay, it would have moved by u(t), which is known
// now; so this step adds the difference. The formula is derived from that sentence, the idea is of
// arXiv 2606.30634 (One-Step Gradient Delay is Not a Barrier).
#pragma once

#include <pipe/base/bytes.hpp>
#include <pipe/base/composed_name.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/diagnosis.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

inline constexpr char before_error_feedback[] = "ErrorFeedback<", after_error_feedback[] = ">";

/// The factor by which a step of O decays a weight that it updates as one element.
template <class O>
double decay_of_elements(O const& o, custom::update_context const& c) {
  if constexpr (requires { o.decay_of_elements(c); })
    return o.decay_of_elements(c);
  else if constexpr (requires { o.weight_decay; })
    return 1 - c.learning_rate * o.weight_decay * c.decay_scale;
  else
    return 1;
}

/// Optimizers whose updates without weight decay do not depend on the weights, as far as is known.
template <class O>
concept updates_by_gradients =
    custom::element_optimizer<O> && (!custom::tensor_optimizer<O> || spectral_optimizer<O>);

}  // namespace detail

/// Another optimizer, which a Pipeline refuses.
template <class O>
struct ErrorFeedback {
  using diagnosis = decltype(detail::diagnosis_of<wrong::optimizer_has_no_error_feedback, O>());
};

/// O with error feedback: w = (1 - rate * weight_decay) w - rate (u + correction (u - u'))
///
/// where u is O's update of this step by a learning rate of 1 and without weight decay, and u' that
/// of the step before (in the first step u' = u). The settings are O's, and `correction`; weight
/// decay is decoupled, as AdamW's, whatever O's is: L2 decay inside u would be differenced as well.
///
/// u is had in every digit as minus O's step on a weight of 0 with a learning rate of 1. The
/// difference of two weights would lose most digits. LAMB and Adafactor, whose steps depend on
/// norms of the weights, are refused. On a quadratic with a delay of one update, rates may be 2.7
/// times as large with momentum 0.9, and must be 0.62 times as large without momentum.
///
/// needs: without weight decay O's update does not depend on the weights, and is proportional to
///        the learning rate: SGD, Adam, AdamW, NAdam, Adamax, RMSprop, Adagrad, Lion, Muon, and
///        formulas by element alike
/// cost:  one state more for each parameter; a matrix needs workspace of its size more
template <detail::updates_by_gradients O>
struct ErrorFeedback<O> : O {
  double correction = 1;  ///< 0: O with decoupled decay

  static constexpr char const* name =
      detail::name_composed_of<detail::before_error_feedback, O, detail::after_error_feedback>.text;
  static constexpr custom::named_states states_of(custom::tensor_kind kind)
    requires requires { O::states_of(kind); }
  {
    custom::named_states all{{"last_update"}};
    for (custom::named_state const& each : O::states_of(kind).items)
      if (each.name != nullptr) all.items[all.count++] = each;
    return all;
  }
  /// throws: as O's, and data_error for a correction outside [0, 1e30]
  void check(custom::setting_check const& is) const {
    if constexpr (detail::checked_settings<O>) O::check(is);
    is.amount("correction", correction);
  }

  // ---- by element ----

  static constexpr int states = 1 + O::states;
  template <class T>
  struct coefficients {
    typename O::template coefficients<T> of;
    T decay, rate, correction;
  };
  template <class T>
  coefficients<T> prepare(custom::update_context const& now) const {
    return {O::template prepare<T>(undecayed(now)), T(detail::decay_of_elements<O>(*this, now)),
            T(now.learning_rate), T(correction_in(now))};
  }
  /// One element: returns the new w, and updates u' and O's states.
  template <math::product P = math::product::exact, class T, class... States>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& k, T w, T g, T& last, States&... of) {
    if constexpr (requires { O::template apply<P>(k.of, T(0), g, of...); })
      return moved<P>(k, w, -O::template apply<P>(k.of, T(0), g, of...), last);
    else
      return moved<P>(k, w, -O::apply(k.of, T(0), g, of...), last);
  }

  // ---- whole matrices ----

  /// On a GPU there are kernels for O's matrices, but not for these.
  void prepare_matrix() const = delete;

  static constexpr long state_elements(custom::tensor_shape const& s)
    requires custom::tensor_optimizer<O>
  {
    return detail::moment_stride(s.elements()) + O::state_elements(s);
  }
  template <class Backend, class T>
  static constexpr long workspace_elements(custom::tensor_shape const& s) {
    return detail::padded<T>(s.elements()) + O::template workspace_elements<Backend, T>(s);
  }
  template <class T>
  struct clear {
    T* x;
    PIPE_HD PIPE_INLINE void operator()(long i) const { x[i] = T(0); }
  };
  /// Element i, of which x is -u.
  template <class T>
  struct move_along {
    T *w, *last;
    T const* x;
    coefficients<T> with;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      w[i] = moved<P>(with, w[i], -x[i], last[i]);
    }
  };
  /// One step on one tensor: O's on zeros gives -u.
  ///
  /// shape: t.state: u' (n), then O's, a moment_stride later; t.workspace: -u (n), then O's
  template <class Kernels, class T>
  PIPE_INLINE void update(Kernels with, custom::update_context const& now,
                          custom::tensor_update<T> const& t) const {
    long const n = t.shape.elements();
    T* const x = t.workspace;
    with.each(n, clear<T>{x});
    O::update(with, undecayed(now),
              custom::tensor_update<T>{t.shape, x, t.gradients, t.state + detail::moment_stride(n),
                                       x + detail::padded<T>(n)});
    coefficients<T> const k{{},
                            T(1 - now.learning_rate * this->weight_decay * now.decay_scale),
                            T(now.learning_rate),
                            T(correction_in(now))};
    with.each(n, move_along<T>{t.values, t.state, x, k});
  }

 private:
  /// A step by a learning rate of 1, without weight decay.
  static custom::update_context undecayed(custom::update_context now) {
    now.learning_rate = 1;
    now.decay_scale = 0;
    return now;
  }
  double correction_in(custom::update_context const& now) const {
    return now.step == 1 ? 0 : correction;
  }
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T moved(coefficients<T> const& k, T w, T u, T& last) {
    T const corrected = math::multiply_add<P>(k.correction, u - last, u);
    last = u;
    return math::multiply_add<P>(k.decay, w, -(k.rate * corrected));
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
