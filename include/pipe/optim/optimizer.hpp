// SPDX-License-Identifier: BSL-1.0
//
// The concept of an optimizer: settings that a user writes (`AdamW{.learning_rate = 3e-4}`), and
// the rule by which parameters change. Most rules are a formula for one element, which every
// backend runs over flat memory regardless of tensor boundaries. Some need a whole tensor, because
// a norm or a matrix product is in the rule; an optimizer may have both, each for parameters of its
// kind.
#pragma once

#include <concepts>

#include <pipe/base/constant.hpp>
#include <pipe/graph/op.hpp>

namespace pp {

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

namespace detail {

/// A matrix to ask an optimizer about whose functions may or may not be constexpr.
inline constexpr tensor_shape smallest_tensor{tensor_kind::matrix, 1, 1};

}  // namespace detail

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

/// An optimizer by tensor. The parameters of the kinds that O `takes` are passed one by one, as a
/// `tensor_update`, to
///
///     template <class Kernels, class T>
///     void update(Kernels, update_context const&, tensor_update<T> const&) const;
///
/// which computes with the functions of the backend's Kernels: `each(n, f)`, `sum_of_squares`,
/// `contract` ... Its state is `state_elements(shape)` numbers, initially 0; its workspace,
/// which keeps nothing between calls, is `workspace_elements<Backend, T>(shape)` numbers. Mark the
/// f of an `each` PIPE_INLINE, as the formulas are.
template <class O>
concept tensor_optimizer = requires(tensor_shape const& shape) {
  { O::takes(tensor_kind::matrix) } -> std::same_as<bool>;
  { O::state_elements(shape) } -> std::same_as<long>;
};

namespace detail {

/// The members of an optimizer, whether or not they are constants.
template <class O>
concept has_parts_of_optimizer =
    (element_optimizer<O> || tensor_optimizer<O>) && requires(O const& o) {
      { O::name } -> std::convertible_to<char const*>;
      { o.learning_rate } -> std::convertible_to<double>;
    };
/// An optimizer: its name and the sizes of its state are constants.
template <class O>
concept optimizer =
    has_parts_of_optimizer<O> && requires { typename constants<is_read(O::name)>; } &&
    (!element_optimizer<O> || requires { typename constants<is_read(O::states)>; }) &&
    (!tensor_optimizer<O> ||
     requires { typename constants<is_read(O::takes(tensor_kind::matrix))>; }) &&
    (!tensor_optimizer<O> ||
     requires { typename constants<is_read(O::state_elements(smallest_tensor))>; });

/// Whether O updates parameters of this kind as whole tensors.
template <class O>
constexpr bool updates_whole(tensor_kind kind) {
  if constexpr (tensor_optimizer<O>) return O::takes(kind);
  return false;
}

}  // namespace detail

/// The numbers of state that O keeps for a whole tensor, or for a run of elements.
template <class O>
constexpr long state_elements(bool whole, tensor_shape const& shape) {
  if constexpr (tensor_optimizer<O>)
    if (whole) return O::state_elements(shape);
  if constexpr (element_optimizer<O>) return O::states * shape.elements();
  return 0;
}

/// The numbers of workspace that O needs for a whole tensor; an element optimizer needs none.
template <class O, class Backend, class T>
constexpr long workspace_elements(bool whole, tensor_shape const& shape) {
  if constexpr (tensor_optimizer<O>)
    if (whole) return O::template workspace_elements<Backend, T>(shape);
  return 0;
}

namespace detail {

/// workspace_elements as a call that is perhaps not constant.
template <class O, class Backend, class T>
struct workspace_call {
  static constexpr auto call() { return workspace_elements<O, Backend, T>(true, smallest_tensor); }
};

}  // namespace detail

}  // namespace pp
