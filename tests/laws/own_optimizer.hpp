// SPDX-License-Identifier: BSL-1.0
//
// An optimizer of whole tensors as a user writes it, for the host and for a GPU.
#pragma once

#include <cmath>

#include <pipe/base/config.hpp>
#include <pipe/optim/optimizer.hpp>

namespace laws {

using namespace pp;

// [passes]
/// w -= rate * g / |g|, the norm being that of the whole tensor
struct Normed {
  double learning_rate = 0.01;

  static constexpr char const* name = "Normed";
  static constexpr bool takes(custom::tensor_kind) { return true; }
  static constexpr int moments = 0;  // arrays of its own, as large as the parameters
  static constexpr int sums = 1;     // over all elements of a tensor
  static constexpr long state_elements(custom::tensor_shape const& s) {
    return custom::moments_elements(moments, s);
  }

  template <class T>
  struct tensor_coefficients {
    T scale;
    double rate;
  };
  template <class T>
  tensor_coefficients<T> prepare_tensor(custom::update_context const& c) const {
    return {T(c.gradient_scale), c.learning_rate};
  }
  /// First pass, of an element: adds to the sums.
  template <class T>
  PIPE_HD static PIPE_INLINE void gather(tensor_coefficients<T> const& k, T, T g,
                                         double (&squares)[sums]) {
    g = g * k.scale;
    squares[0] += double(g) * double(g);
  }
  /// Between the passes: what all elements of the tensor get.
  template <class T>
  PIPE_HD static double factor(tensor_coefficients<T> const& k, double const (&squares)[sums],
                               long) {
    return squares[0] > 0 ? k.rate / std::sqrt(squares[0]) : 0;
  }
  /// Second pass, of an element: the new parameter.
  template <class T>
  PIPE_HD static PIPE_INLINE T move(tensor_coefficients<T> const& k, T factor, T w, T g) {
    return w - factor * (g * k.scale);
  }

  // On the host.
  template <class Backend, class T>
  static constexpr long workspace_elements(custom::tensor_shape const&) {
    return 0;
  }
  template <class Kernels, class T>
  void update(Kernels, custom::update_context const& c, custom::tensor_update<T> const& t) const {
    custom::update_in_two_passes(*this, c, t);
  }
};
// [/passes]

}  // namespace laws
