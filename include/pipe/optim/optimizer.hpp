// SPDX-License-Identifier: BSL-1.0
//
// The concept of an optimizer: settings that a user writes (`AdamW{.learning_rate = 3e-4}`), and
// how parameters change. Most are a formula for one element, which every backend runs over flat
// memory, whatever tensors lie there. Some need a whole tensor at once, because a norm or a product
// of matrices is in it; one may do both, each for parameters of its kind.
#pragma once

#include <concepts>

#include <pipe/base/constant.hpp>
#include <pipe/graph/op.hpp>

namespace pp {

/// What the runtime knows when it asks for an update.
struct update_context {
  long step = 1;  ///< counted from 1
  double learning_rate =
      0;  ///< of this step and these parameters: after the schedule and the group
  double gradient_scale = 1;  ///< multiplies every gradient first: clipping
  double decay_scale = 0;     ///< multiplies the weight decay: 0 for biases and norms
};

/// `states` arrays of the parameter's size belong to the optimizer, zero at the start;
/// `apply(coefficients, w, g, states &...)` returns the new parameter. What a step's coefficients
/// have in common is computed once, in double.
template <class O>
concept element_optimizer = requires(O const& o, update_context const& c) {
  { O::states } -> std::convertible_to<int>;
  { o.template prepare<float>(c) } -> std::same_as<typename O::template coefficients<float>>;
};

/// A vector has one row; the weight of a Linear is [inputs, outputs].
struct tensor_shape {
  tensor_kind kind = tensor_kind::vector;
  long rows = 0, columns = 0;
  constexpr long elements() const { return rows * columns; }
};

namespace detail {

inline constexpr tensor_shape smallest_tensor{tensor_kind::matrix, 1, 1};

}  // namespace detail

/// One parameter, row-major. Each array begins at a multiple of `alignment` bytes.
template <class T>
struct tensor_update {
  tensor_shape shape{};
  T* values = nullptr;
  T const* gradients = nullptr;
  T* state = nullptr;
  T* workspace = nullptr;
};

/// The parameters of the kinds that O `takes` come one by one, as a `tensor_update`, to
///
///     template <class Kernels, class T>
///     void update(Kernels, update_context const&, tensor_update<T> const&) const;
///
/// which computes with what the backend's Kernels offer: `each(n, f)`, `sum_of_squares`, `contract`
/// ... Its state is `state_elements(shape)` numbers, zero at the start; its workspace, which keeps
/// nothing, is `workspace_elements<Backend, T>(shape)` numbers. Mark the f of an `each`
/// PIPE_INLINE, as the formulas are.
template <class O>
concept tensor_optimizer = requires(tensor_shape const& shape) {
  { O::takes(tensor_kind::matrix) } -> std::same_as<bool>;
  { O::state_elements(shape) } -> std::same_as<long>;
};

namespace detail {

/// All that an optimizer has, known to the compiler or not.
template <class O>
concept has_parts_of_optimizer =
    (element_optimizer<O> || tensor_optimizer<O>) && requires(O const& o) {
      { O::name } -> std::convertible_to<char const*>;
      { o.learning_rate } -> std::convertible_to<double>;
    };
/// How much it keeps, and of what, is known to the compiler.
template <class O>
concept optimizer =
    has_parts_of_optimizer<O> && requires { typename constants<is_read(O::name)>; } &&
    (!element_optimizer<O> || requires { typename constants<is_read(O::states)>; }) &&
    (!tensor_optimizer<O> ||
     requires { typename constants<is_read(O::takes(tensor_kind::matrix))>; }) &&
    (!tensor_optimizer<O> ||
     requires { typename constants<is_read(O::state_elements(smallest_tensor))>; });

/// Whether O updates parameters of this kind one by one.
template <class O>
constexpr bool updates_whole(tensor_kind kind) {
  if constexpr (tensor_optimizer<O>) return O::takes(kind);
  return false;
}

}  // namespace detail

/// Numbers of state that O keeps for a whole tensor, or for a run of single elements.
template <class O>
constexpr long state_elements(bool whole, tensor_shape const& shape) {
  if constexpr (tensor_optimizer<O>)
    if (whole) return O::state_elements(shape);
  if constexpr (element_optimizer<O>) return O::states * shape.elements();
  return 0;
}

/// Numbers of workspace that O needs for a whole tensor.
template <class O, class Backend, class T>
constexpr long workspace_elements(bool whole, tensor_shape const& shape) {
  if constexpr (tensor_optimizer<O>)
    if (whole) return O::template workspace_elements<Backend, T>(shape);
  return 0;
}

namespace detail {

template <class O, class Backend, class T>
struct workspace_call {
  static constexpr auto call() { return workspace_elements<O, Backend, T>(true, smallest_tensor); }
};

}  // namespace detail

}  // namespace pp
