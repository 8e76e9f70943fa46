// SPDX-License-Identifier: BSL-1.0
//
// The concept of an optimizer: settings that a user writes (`AdamW{.learning_rate = 3e-4}`), and
// the rule by which parameters change. Most rules are a formula for one element, which every
// backend runs over flat memory regardless of tensor boundaries. Some need a whole tensor, because
// a norm or a matrix product is in the rule; an optimizer may have both, each for parameters of its
// kind.
#pragma once

#include <concepts>

#include <pipe/base/bytes.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/constant.hpp>
#include <pipe/graph/op.hpp>

namespace pp {

namespace custom {

/// The arguments of an update that the runtime provides.
struct update_context {
  long step = 1;  ///< counted from 1
  /// Of this step and these parameters, after the learning-rate schedule and the group.
  double learning_rate = 0;
  double gradient_scale = 1;  ///< multiplies every gradient first: clipping
  double decay_scale = 0;     ///< multiplies the weight decay: 0 for biases and norms
};

/// An optimizer by element. It has `states` arrays of the parameter's size, initially 0;
/// `apply(coefficients, w, g, states &...)` returns the new parameter. `prepare` computes the
/// coefficients once per step, in double.
template <class O>
concept element_optimizer = requires(O const& o, update_context const& c) {
  { O::states } -> std::convertible_to<int>;
  { o.template prepare<float>(c) } -> std::same_as<typename O::template coefficients<float>>;
};

/// The shape of a parameter. A vector has one row; the weight of a Linear is [inputs, outputs].
struct tensor_shape {
  tensor_kind kind = tensor_kind::vector;
  long rows = 0, columns = 0;
  constexpr long elements() const { return rows * columns; }
};

/// One parameter, row-major. Each array begins at a multiple of `alignment` bytes.
template <class T>
struct tensor_update {
  tensor_shape shape{};
  T* values = nullptr;
  T const* gradients = nullptr;
  /// state_elements(shape) numbers, kept from step to step.
  T* state = nullptr;
  /// workspace_elements<Backend, T>(shape) numbers, undefined when an update begins.
  T* workspace = nullptr;
};

/// An optimizer by tensor. The parameters of the kinds that O `takes` are passed one by one to
///
///     template <class Kernels, class T>
///     void update(Kernels, custom::update_context const&, custom::tensor_update<T> const&) const;
///
/// which computes with the functions of the backend's Kernels: `each(n, f)`, `sum_of_squares`,
/// `contract` ... Its state is `state_elements(shape)` numbers, initially 0; its workspace, which
/// keeps nothing between calls, is `workspace_elements<Backend, T>(shape)` numbers. Mark the f of
/// an `each` PIPE_INLINE, as the formulas are.
template <class O>
concept tensor_optimizer = requires(tensor_shape const& shape) {
  { O::takes(tensor_kind::matrix) } -> std::same_as<bool>;
  { O::state_elements(shape) } -> std::same_as<long>;
};

/// An optimizer by tensor whose update is two passes over a tensor, with sums between them. This is
/// what a GPU has kernels for:
///
///     static constexpr int moments, sums;   // at most 2 and 4
///     tensor_coefficients<T> prepare_tensor<T>(context) const;   // once per step, by the host
///     static void gather(coefficients, w, g, double (&sums)[], moments &...);
///     static double factor(coefficients, double const (&sums)[], elements);
///     static T move(coefficients, T factor, w, g, moments...);   // returns the new parameter
///
/// `gather` renews an element's moments and adds its terms to the sums; `factor` makes of these
/// what `move` of every element gets. Its state is moments_elements(moments, shape) numbers.
template <class O>
concept two_pass_optimizer = tensor_optimizer<O> && requires(O const& o, update_context const& c) {
  { O::moments } -> std::convertible_to<int>;
  { O::sums } -> std::convertible_to<int>;
  {
    o.template prepare_tensor<float>(c)
  } -> std::same_as<typename O::template tensor_coefficients<float>>;
};

}  // namespace custom

namespace detail {

/// From one moment of a tensor to the next: each begins where wide accesses may.
constexpr long moment_stride(long elements) { return padded<float>(elements); }

}  // namespace detail

namespace custom {

/// The numbers of state of some moments.
constexpr long moments_elements(int moments, tensor_shape const& shape) {
  long const n = shape.elements();
  return moments == 0 ? 0 : (moments - 1) * detail::moment_stride(n) + n;
}

}  // namespace custom

namespace detail {

/// A matrix to ask an optimizer about whose functions may or may not be constexpr.
inline constexpr custom::tensor_shape smallest_tensor{custom::tensor_kind::matrix, 1, 1};

/// An optimizer of matrices whose update is a Newton-Schulz iteration, and whose state a momentum.
template <class O>
concept spectral_optimizer =
    custom::tensor_optimizer<O> &&
    requires(O const& o, custom::update_context const& c, custom::tensor_shape const& s) {
      { o.newton_schulz_steps } -> std::convertible_to<int>;
      {
        o.template prepare_matrix<float>(c, s)
      } -> std::same_as<typename O::template matrix_coefficients<float>>;
    };

/// A two_pass_optimizer, of one moment, that keeps no moment of a matrix but averages of its rows
/// and columns, whose product it is.
template <class O>
concept factored_optimizer = custom::two_pass_optimizer<O> && requires {
  { O::is_factored(custom::tensor_kind::matrix) } -> std::same_as<bool>;
};

}  // namespace detail

namespace custom {

PIPE_OPTIMIZED_BEGIN
/// One step of such an optimizer on one tensor, on the host: its `update`, if a plain loop is fast
/// enough.
template <class O, class T>
void update_in_two_passes(O const& o, update_context const& c, tensor_update<T> const& t) {
  static_assert(O::moments >= 0 && O::moments <= 2);
  auto const with = o.template prepare_tensor<T>(c);
  long const n = t.shape.elements();
  // Bits are this loop's: a GPU adds in another order, ranges of 4096 elements first.
  T *const m = t.state, *const v = t.state + (O::moments > 1 ? detail::moment_stride(n) : 0);
  double sums[O::sums]{};
  for (long i = 0; i < n; ++i) {
    if constexpr (O::moments == 0)
      O::gather(with, t.values[i], t.gradients[i], sums);
    else if constexpr (O::moments == 1)
      O::gather(with, t.values[i], t.gradients[i], sums, m[i]);
    else
      O::gather(with, t.values[i], t.gradients[i], sums, m[i], v[i]);
  }
  T const factor = T(O::factor(with, sums, n));
  for (long i = 0; i < n; ++i) {
    if constexpr (O::moments == 0)
      t.values[i] = O::move(with, factor, t.values[i], t.gradients[i]);
    else if constexpr (O::moments == 1)
      t.values[i] = O::move(with, factor, t.values[i], t.gradients[i], m[i]);
    else
      t.values[i] = O::move(with, factor, t.values[i], t.gradients[i], m[i], v[i]);
  }
}

}  // namespace custom

PIPE_OPTIMIZED_END

namespace detail {

/// The members of an optimizer, whether or not they are constants.
template <class O>
concept has_parts_of_optimizer =
    (custom::element_optimizer<O> || custom::tensor_optimizer<O>) && requires(O const& o) {
      { O::name } -> std::convertible_to<char const*>;
      { o.learning_rate } -> std::convertible_to<double>;
    };
/// An optimizer: its name and the sizes of its state are constants.
template <class O>
concept optimizer =
    has_parts_of_optimizer<O> && requires { typename constants<is_read(O::name)>; } &&
    (!custom::element_optimizer<O> || requires { typename constants<is_read(O::states)>; }) &&
    (!custom::tensor_optimizer<O> ||
     requires { typename constants<is_read(O::takes(custom::tensor_kind::matrix))>; }) &&
    (!custom::tensor_optimizer<O> ||
     requires { typename constants<is_read(O::state_elements(smallest_tensor))>; });

/// Whether O updates parameters of this kind as whole tensors.
template <class O>
constexpr bool updates_whole(custom::tensor_kind kind) {
  if constexpr (custom::tensor_optimizer<O>) return O::takes(kind);
  return false;
}

/// The numbers of state that O keeps for a whole tensor, or for a range of elements.
template <class O>
constexpr long state_elements(bool whole, custom::tensor_shape const& shape) {
  if constexpr (custom::tensor_optimizer<O>)
    if (whole) return O::state_elements(shape);
  if constexpr (custom::element_optimizer<O>) return O::states * shape.elements();
  return 0;
}

/// The numbers of workspace that O needs for a whole tensor; an element optimizer needs none.
template <class O, class Backend, class T>
constexpr long workspace_elements(bool whole, custom::tensor_shape const& shape) {
  if constexpr (custom::tensor_optimizer<O>)
    if (whole) return O::template workspace_elements<Backend, T>(shape);
  return 0;
}

/// workspace_elements as a call that is perhaps not constant.
template <class O, class Backend, class T>
struct workspace_call {
  static constexpr auto call() { return workspace_elements<O, Backend, T>(true, smallest_tensor); }
};

}  // namespace detail

}  // namespace pp
