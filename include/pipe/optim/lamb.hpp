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
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

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
  void check(setting_check const& is) const { detail::adam_formula<false>::check(*this, is); }
  static constexpr bool takes(tensor_kind) { return true; }
  /// Two moments per element.
  static constexpr long state_elements(tensor_shape const& s) { return 2 * s.elements(); }
  template <class Backend, class T>
  static constexpr long workspace_elements(tensor_shape const& s) {
    return s.elements();
  }

  /// Element i: updates the moments m and v, and writes the direction u before it is scaled by |w|
  /// / |u|.
  template <class T>
  struct make_direction {
    T const *w, *g;
    T *m, *v, *u;
    /// `first`, `second`: bias corrections 1 / (1 - beta1^step), 1 / sqrt(1 - beta2^step)
    T scale, beta1, rest1, beta2, rest2, first, second, epsilon, decay;
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      T const x = g[i] * scale;
      m[i] = beta1 * m[i] + rest1 * x;
      v[i] = beta2 * v[i] + rest2 * (x * x);
      u[i] = first * m[i] / (math::sqrt(v[i]) * second + epsilon) + decay * w[i];
    }
  };
  /// w[i] -= rate * u[i].
  template <class T>
  struct move {
    T* w;
    T const* u;
    T rate;
    PIPE_HD PIPE_INLINE void operator()(long i) const { w[i] = w[i] - rate * u[i]; }
  };

  /// One step on one tensor.
  ///
  /// shape: t.state: m, then v, of n elements each; t.workspace: u (n)
  /// cost:  two passes over the tensor and two norms: the norms must be known before the first
  ///        element moves
  template <class Kernels, class T>
  PIPE_INLINE void update(Kernels k, update_context const& c, tensor_update<T> const& t) const {
    long const n = t.shape.elements();
    double const step = double(c.step);
    k.each(n, make_direction<T>{t.values, t.gradients, t.state, t.state + n, t.workspace,
                                T(c.gradient_scale), T(beta1), T(1 - beta1), T(beta2), T(1 - beta2),
                                T(1 / (1 - libm::pow(beta1, step))),
                                T(1 / libm::sqrt(1 - libm::pow(beta2, step))), T(epsilon),
                                T(weight_decay * c.decay_scale)});
    double const w = k.sum_of_squares(n, t.values), u = k.sum_of_squares(n, t.workspace);
    double const ratio = w > 0 && u > 0 ? libm::sqrt(w / u) : 1;
    k.each(n, move<T>{t.values, t.workspace, T(c.learning_rate * ratio)});
  }
};

}  // namespace pp
