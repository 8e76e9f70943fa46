// SPDX-License-Identifier: BSL-1.0
//
// Muon, as torch.optim.Muon: the momentum of a matrix is replaced by the nearest matrix with
// orthonormal rows or columns, so that all directions move by the same amount. Biases, norms,
// embeddings and positions, which have no such directions, are updated by AdamW. Source: Jordan et
// al., Muon: An optimizer for hidden layers in neural networks, 2024.
#pragma once

#include <utility>

#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/math.hpp>
#include <pipe/optim/adam.hpp>
#include <pipe/optim/named_states.hpp>
#include <pipe/optim/optimizer.hpp>
#include <pipe/optim/setting_check.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

namespace detail {

/// The factor on the learning rate by a matrix's outputs and inputs; the names are PyTorch's.
enum class muon_rate : unsigned char {
  original,  // sqrt(max(1, outputs / inputs)): Jordan's
  // 0.2 sqrt(max(outputs, inputs)): updates as large as AdamW's. Source: Liu et al., 2025
  match_rms_adamw,
  spectral_unclamped,  // sqrt(outputs / inputs): Bernstein's
};

}  // namespace detail

/// m = momentum m + (1 - momentum) g; x = nesterov ? momentum m + (1 - momentum) g : m; x /= |x|;
/// `newton_schulz_steps` times x = a x + (b s + c s^2) x with s = x x'; w = (1 - rate *
/// weight_decay) w - rate * adjusted(shape) * x.
///
/// note: PyTorch iterates in bfloat16, this one in the type of the parameters
struct Muon {
  double learning_rate = 1e-3;
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  /// Coefficients of the Newton-Schulz polynomial.
  double a = 3.4445, b = -4.7750, c = 2.0315;
  double epsilon = 1e-7;  ///< the lower bound of |x|
  int newton_schulz_steps = 5;
  detail::muon_rate adjust = detail::muon_rate::original;
  /// For all parameters that are not matrices. Their learning rate changes from step to step in
  /// proportion to that of Muon.
  AdamW others{};

  static constexpr char const* name = "Muon";
  static constexpr custom::named_states states_of(custom::tensor_kind kind) {
    return takes(kind) ? custom::named_states{{"momentum_buffer"}} : formula::states_of();
  }
  template <class Use>
  constexpr void for_each_state_setting(Use use) const {
    formula::for_each_state_setting(others, use);
  }
  /// throws: data_error for a setting out of range, those of `others` included
  void check(custom::setting_check const& is) const {
    is.fraction("momentum", momentum);
    is.amount("weight_decay", weight_decay);
    is.number("a", a);
    is.number("b", b);
    is.number("c", c);
    is.positive("epsilon", epsilon);
    is.count("newton_schulz_steps", newton_schulz_steps, 0);
    is.amount("others.learning_rate", others.learning_rate);
    others.check(custom::setting_check("Muon.others"));
  }

  // ---- parameters that are not matrices ----

  using formula = detail::adam_formula<true>;
  static constexpr int states = formula::states;
  template <class T>
  using coefficients = formula::coefficients<T>;
  /// The context of `others`: it has the rate of Muon in this step; theirs is in the same
  /// proportion to its setting. With a setting of 0 there is none: both have the same rate.
  custom::update_context of_others(custom::update_context context) const {
    if (learning_rate > 0) context.learning_rate *= others.learning_rate / learning_rate;
    return context;
  }
  template <class T>
  coefficients<T> prepare(custom::update_context const& context) const {
    return formula::prepare<T>(others, of_others(context));
  }
  /// The factor by which a step decays a weight that is not in a matrix.
  double decay_of_elements(custom::update_context const& context) const {
    return 1 - of_others(context).learning_rate * others.weight_decay * context.decay_scale;
  }
  /// One element of AdamW.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T apply(coefficients<T> const& k, T w, T g, T& m, T& v) {
    return formula::apply<P>(k, w, g, m, v);
  }

  // ---- matrices ----

  /// On a GPU matrices of a stage are updated together if they need no more workspace than this, in
  /// numbers.
  static constexpr long most_workspace = 16L << 20;
  /// Only matrices are updated as whole tensors, with their momentum as state.
  static constexpr bool takes(custom::tensor_kind kind) {
    return kind == custom::tensor_kind::matrix;
  }
  static constexpr long state_elements(custom::tensor_shape const& s) { return s.elements(); }

  /// The extents of x, transposed if needed so that it has more rows than columns: then the
  /// products x'x and x u read both factors row by row.
  struct extents {
    long tall, wide;
    constexpr explicit extents(custom::tensor_shape const& s)
        : tall(s.rows > s.columns ? s.rows : s.columns),
          wide(s.rows > s.columns ? s.columns : s.rows) {}
  };
  /// Elements of workspace for a matrix: x, its successor, s, its square, and the largest of three
  /// products.
  template <class Backend, class T>
  static constexpr long workspace_elements(custom::tensor_shape const& s) {
    extents const e(s);
    long most = Backend::template contraction_elements<T>(e.wide, e.wide, e.tall);
    for (long const other : {Backend::template contraction_elements<T>(e.wide, e.wide, e.wide),
                             Backend::template contraction_elements<T>(e.tall, e.wide, e.wide)})
      if (other > most) most = other;
    return 2 * detail::padded<T>(s.elements()) + 2 * detail::padded<T>(e.wide * e.wide) + most;
  }

  /// The settings and the context of a step, for a matrix of this shape.
  template <class T>
  struct matrix_coefficients {
    T scale, rest, look_ahead, a, b, c, decay, rate;
    double epsilon;
  };
  template <class T>
  matrix_coefficients<T> prepare_matrix(custom::update_context const& context,
                                        custom::tensor_shape const& s) const {
    return {T(context.gradient_scale),
            T(1 - momentum),
            T(nesterov ? 1 - momentum : 0),
            T(a),
            T(b),
            T(c),
            T(1 - context.learning_rate * weight_decay * context.decay_scale),
            T(context.learning_rate * adjusted(double(s.columns), double(s.rows))),
            epsilon};
  }
  /// Updates the momentum m; returns the element of the matrix to be orthogonalised, x.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T average(matrix_coefficients<T> const& k, T g, T& m) {
    m = math::multiply_add<P>(k.rest, math::multiply_add<P>(k.scale, g, -m), m);
    return math::multiply_add<P>(k.look_ahead, math::multiply_add<P>(k.scale, g, -m), m);
  }
  /// The factor that makes |x| at most 1.
  template <class T>
  PIPE_HD static T normaliser(matrix_coefficients<T> const& k, double square) {
    double const norm = libm::sqrt(square);
    return T(1 / (norm < k.epsilon ? k.epsilon : norm));
  }
  /// The polynomial's upper terms, of an element of s and of its square.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T polynomial(matrix_coefficients<T> const& k, T s, T square) {
    return math::multiply_add<P>(k.b, s, k.c * square);
  }
  /// One element of a parameter, when x is orthogonal.
  template <math::product P = math::product::exact, class T>
  PIPE_HD static PIPE_INLINE T move(matrix_coefficients<T> const& k, T w, T x) {
    return math::multiply_add<P>(k.decay, w, -(k.rate * x));
  }

  // ---- a matrix on the host ----

  /// Element i: updates the momentum, and writes x.
  template <class T>
  struct average_elements {
    T const* g;
    T *m, *x;
    matrix_coefficients<T> with;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      x[i] = average<P>(with, g[i], m[i]);
    }
  };
  /// x[i] *= factor
  template <class T>
  struct scale_by {
    T* x;
    T factor;
    PIPE_HD PIPE_INLINE void operator()(long i) const { x[i] = factor * x[i]; }
  };
  /// square[i] = b * s[i] + c * square[i]
  template <class T>
  struct combine {
    T* square;
    T const* s;
    matrix_coefficients<T> with;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      square[i] = polynomial<P>(with, s[i], square[i]);
    }
  };
  /// w[i] = decay * w[i] - rate * x[i]
  template <class T>
  struct move_along {
    T* w;
    T const* x;
    matrix_coefficients<T> with;
    template <math::product P = math::product::exact>
    PIPE_HD PIPE_INLINE void operator()(long i) const {
      w[i] = move<P>(with, w[i], x[i]);
    }
  };

  /// One step on one matrix.
  ///
  /// shape:  t.state: momentum (n); t.workspace: x and its successor (n each), s and its square
  ///         (wide^2 each), then that of the products
  /// law:    x is transposed if it is wider than tall, so that s is the smaller of x' x and x x'
  /// cost:   per iteration 2 wide^2 (2 tall + wide) FLOPs in three products, which bound a step
  /// source: Jordan et al., Muon, 2024: the quintic Newton-Schulz iteration with these a, b, c
  template <class Kernels, class T>
  PIPE_INLINE void update(Kernels k, custom::update_context const& context,
                          custom::tensor_update<T> const& t) const {
    long const n = t.shape.elements();
    extents const e(t.shape);
    bool const lies = t.shape.rows < t.shape.columns;
    T* x = t.workspace;
    T* next = x + detail::padded<T>(n);
    T* const s = next + detail::padded<T>(n);
    T* const square = s + detail::padded<T>(e.wide * e.wide);
    T* const free = square + detail::padded<T>(e.wide * e.wide);

    matrix_coefficients<T> const with = prepare_matrix<T>(context, t.shape);
    k.each(n, average_elements<T>{t.gradients, t.state, lies ? next : x, with});
    if (lies) k.transpose(next, t.shape.rows, t.shape.columns, x);
    k.each(n, scale_by<T>{x, normaliser(with, k.sum_of_squares(n, x))});
    // s = x' x, square = s s; then x (a 1 + b s + c s^2), with the polynomial in one matrix.
    for (int i = 0; i < newton_schulz_steps; ++i) {
      k.contract({e.wide, e.wide, e.tall}, {x, 1, e.wide}, x, s, free);
      k.contract({e.wide, e.wide, e.wide}, {s, e.wide, 1}, s, square, free);
      k.each(e.wide * e.wide, combine<T>{square, s, with});
      for (long d = 0; d < e.wide; ++d) square[d * e.wide + d] += with.a;
      k.contract({e.tall, e.wide, e.wide}, {x, e.wide, 1}, square, next, free);
      std::swap(x, next);
    }
    if (lies) {
      k.transpose(x, e.tall, e.wide, next);
      std::swap(x, next);
    }
    k.each(n, move_along<T>{t.values, x, with});
  }

  /// The factor on the learning rate for a matrix; see muon_rate.
  double adjusted(double outputs, double inputs) const {
    switch (adjust) {
      case detail::muon_rate::match_rms_adamw: return 0.2 * libm::sqrt(libm::fmax(outputs, inputs));
      case detail::muon_rate::spectral_unclamped: return libm::sqrt(outputs / inputs);
      case detail::muon_rate::original: break;
    }
    return libm::sqrt(libm::fmax(1.0, outputs / inputs));
  }
};

}  // namespace pp
PIPE_OPTIMIZED_END
