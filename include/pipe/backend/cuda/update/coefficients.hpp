// SPDX-License-Identifier: BSL-1.0
//
// The sets of coefficients that the host prepares for a step: a set for each range of parameters,
// for single elements or for a whole tensor, as the range is updated. All sets of an optimizer have
// the same size, so that the number of a range is enough to find its set.
#pragma once

#include <pipe/base/config.hpp>
#include <pipe/optim/optimizer.hpp>

namespace pp::cuda {

/// Bytes of a set of coefficients, a multiple of the alignment.
template <class Optimizer>
constexpr long coefficient_bytes() {
  long bytes = 0, alignment = 1;
  [[maybe_unused]] auto const add = [&](long size, long aligned) {
    bytes = size > bytes ? size : bytes;
    alignment = aligned > alignment ? aligned : alignment;
  };
  if constexpr (custom::element_optimizer<Optimizer>) {
    using of_element = typename Optimizer::template coefficients<float>;
    add(long(sizeof(of_element)), long(alignof(of_element)));
  }
  if constexpr (custom::two_pass_optimizer<Optimizer>) {
    using of_tensor = typename Optimizer::template tensor_coefficients<float>;
    add(long(sizeof(of_tensor)), long(alignof(of_tensor)));
  }
  if constexpr (detail::spectral_optimizer<Optimizer>) {
    using of_matrix = typename Optimizer::template matrix_coefficients<float>;
    add(long(sizeof(of_matrix)), long(alignof(of_matrix)));
  }
  return (bytes + alignment - 1) / alignment * alignment;
}

/// The same as a constant, for device code.
template <class Optimizer>
inline constexpr long set_bytes = coefficient_bytes<Optimizer>();

/// Set number `i` of the sets that begin at `first`.
template <class Optimizer, class Coefficients, class Byte>
PIPE_HD PIPE_INLINE Coefficients& coefficients_at(Byte* first, long i) {
  return *reinterpret_cast<Coefficients*>(first + i * set_bytes<Optimizer>);
}

}  // namespace pp::cuda
