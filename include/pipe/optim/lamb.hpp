// SPDX-License-Identifier: BSL-1.0
//
// LAMB: Adam's direction, but each parameter tensor moves in proportion to its own norm, so that
// very large mini-batches train with one learning rate for all layers. Source: You et al., Large
// Batch Optimization for Deep Learning, 2020, algorithm 2.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// u = mhat / (sqrt(vhat) + epsilon) + weight_decay * w, with mhat and vhat as in Adam;
/// w -= rate * |w| / |u| * u, with norms over a whole tensor. If either norm is 0 the ratio is 1.
struct LAMB {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;

  static constexpr char const* name = "LAMB";
  /// throws: as adam_formula::check()
  void check(custom::setting_check const& is) const {
    detail::adam_formula<false>::check(*this, is);
  }
  static constexpr bool takes(custom::tensor_kind) { return true; }
  static constexpr int moments = 2, sums = 2;
  static constexpr custom::named_states states_of(custom::tensor_kind) {
    return detail::adam_formula<false>::states_of();
  }
  template <class Use>
  constexpr void for_each_state_setting(Use use) const {
    detail::adam_formula<false>::for_each_state_setting(*this, use);
  }
  static constexpr long state_elements(custom::tensor_shape const& s) {
    return custom::moments_elements(moments, s);
  }
  template <class Backend, class T>
  static constexpr long workspace_elements(custom::tensor_shape const& s) {
    return s.elements();
  }

  // ---- one element ----

  /// `first`, `second`: bias corrections 1 / (1 - beta1^step), 1 / sqrt(1 - beta2^step)
  template <class T>
  struct tensor_coefficients {
    T scale, beta1, rest1, beta2, rest2, first, second, epsilon, decay;
    double rate;
  };
  /// law: computed in double and rounded once to T
  template <class T>
  tensor_coefficients<T> prepare_tensor(custom::update_context const& c) const {
    double const step = double(c.step);
    return {T(c.gradient_scale),
            T(beta1),
            T(1 - beta1),
            T(beta2),
            T(1 - beta2),
            T(1 / (1 - libm::pow(beta1, step))),
            T(1 / libm::sqrt(1 - libm::pow(beta2, step))),
            T(epsilon),
            T(weight_decay * c.decay_scale),
            c.learning_rate};
  }
  /// Updates the moments.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE void average(tensor_coefficients<T> const& k, T g, T& m, T& v) {
    T const x = g * k.scale;
    m = math::multiply_add<P>(k.beta1, m, k.rest1 * x);
    v = math::multiply_add<P>(k.beta2, v, k.rest2 * (x * x));
  }
  /// u, before it is scaled by |w| / |u|.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T direction(tensor_coefficients<T> const& k, T w, T m, T v) {
    T const adam = k.first * m / math::multiply_add<P>(math::sqrt<P>(v), k.second, k.epsilon);
    return math::multiply_add<P>(k.decay, w, adam);
  }

  // ---- two passes: see two_pass_optimizer ----

  /// An element's terms of |w|^2 and |u|^2.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE void gather(tensor_coefficients<T> const& k, T w, T g,
                                         double (&squares)[sums], T& m, T& v) {
    average<P>(k, g, m, v);
    double const u = double(direction<P>(k, w, m, v));
    squares[0] += double(w) * double(w);
    squares[1] += u * u;
  }
  /// rate * |w| / |u|.
  template <class T>
  PIPE_HD static double factor(tensor_coefficients<T> const& k, double const (&squares)[sums],
                               long) {
    double const w = squares[0], u = squares[1];
    return k.rate * (w > 0 && u > 0 ? libm::sqrt(w / u) : 1);
  }
  /// The direction once more: it is cheaper to compute than to keep.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T move(tensor_coefficients<T> const& k, T factor, T w, T, T m, T v) {
    return math::multiply_add<P>(-factor, direction<P>(k, w, m, v), w);
  }

  // ---- a tensor on the host ----

  /// Element i: updates the moments m and v, and writes u.
  template <class T>
  struct make_direction {
    T const *w, *g;
    T *m, *v, *u;
    tensor_coefficients<T> with;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      average<P>(with, g[i], m[i], v[i]);
      u[i] = direction<P>(with, w[i], m[i], v[i]);
    }
  };
  /// w[i] -= rate * u[i].
  template <class T>
  struct move_along {
    T* w;
    T const* u;
    T rate;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      w[i] = math::multiply_add<P>(-rate, u[i], w[i]);
    }
  };

  /// One step on one tensor.
  ///
  /// shape: t.state: m, then v, a detail::moment_stride later; t.workspace: u (n)
  /// cost:  two passes over the tensor and two norms: the norms must be known before the first
  ///        element moves
  template <class Kernels, class T>
  PIPE_INLINE void update(Kernels k, custom::update_context const& c,
                          custom::tensor_update<T> const& t) const {
    long const n = t.shape.elements();
    tensor_coefficients<T> const with = prepare_tensor<T>(c);
    k.each(n, make_direction<T>{t.values, t.gradients, t.state, t.state + detail::moment_stride(n),
                                t.workspace, with});
    // The norms are of w before it moves.
    double const squares[sums] = {k.sum_of_squares(n, t.values), k.sum_of_squares(n, t.workspace)};
    k.each(n, move_along<T>{t.values, t.workspace, T(factor(with, squares, n))});
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
