// SPDX-License-Identifier: BSL-1.0
//
// The arguments of a host kernel.
#pragma once

#include <pipe/backend/host/parts.hpp>
#include <pipe/backend/host/sliced_products.hpp>
#include <pipe/backend/launch_context.hpp>
#include <pipe/base/config.hpp>
#include <pipe/graph/further_loss.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::host {

/// One launch on one micro-batch, or one thread's part of a launch, with a workspace for this part.
template <class T>
struct arguments : detail::launch_context, detail::random_context {
  T loss_scale{};  ///< factor of gradients: 1 / number of terms in the mini-batch's mean loss
  detail::further_losses const* further = nullptr;  ///< the losses of the run; null in inference
  int part = 0, parts = 1;                          ///< part number `part` of `parts`
  product_unit unit = product_unit::vectors;        ///< of products of 16-bit numbers
  unsigned panels = 0;                              ///< bit i: operand i is in panels

  T* at(int i) const { return static_cast<T*>(operand[i]); }
  /// Operand i; null for an absent operand, i < 0.
  T* maybe(int i) const { return i < 0 ? nullptr : at(i); }
  /// Operand i as values in memory, of type V; maybe_values: null for an absent operand.
  template <class V>
  V* values(int i) const {
    return static_cast<V*>(operand[i]);
  }
  template <class V>
  V* maybe_values(int i) const {
    return i < 0 ? nullptr : values<V>(i);
  }
  int const* ids(int i) const { return static_cast<int const*>(operand[i]); }
};

/// A compiled kernel group: one entry of a backend's table of launches.
template <class T>
using kernel = void (*)(arguments<T> const&);

/// The epilogue of a finished row of a group's anchor. Null: no epilogue, the row is stored.
template <class T>
using row_finish = void (*)(arguments<T> const& a, extent row, T const* y);

}  // namespace pp::host
PIPE_OPTIMIZED_END
