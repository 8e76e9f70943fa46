// SPDX-License-Identifier: BSL-1.0
//
// Gated linear units (Dauphin et al., 2017; Shazeer, 2020): one half of the channels scales the
// other. The layer before makes both halves, so a transformer's feed-forward part is `Linear<2 *
// N>, SwiGLU, Linear<C>`.
#pragma once

#include <pipe/graph/builder.hpp>
#include <pipe/nn/activation.hpp>

namespace pp {

namespace detail {

/// The layer of a formula F on the halves a, b of each row: F(a) * b, or a * F(b) if not
/// `ActivatesFirst`.
///
/// shape:  (..., 2C) -> (..., C)
/// needs:  an even number of channels
/// law:    backward computes F(a) again instead of storing it
template <class F, bool ActivatesFirst = true>
struct gated {
  using formula = F;
  static constexpr bool activates_first = ActivatesFirst;

  template <class Builder>
  static constexpr void describe(Builder& b) {
    if constexpr (!pp::detail::formula<F>) complain_of_formula<F>(b);
    if (!b.needs_numbers()) return;
    int const width = b.current().form.columns();
    if (width % 2 != 0) return b.report(wrong::gate_needs_an_even_width, sample_shape(width));
    b.set(b.gate(b.current()));
  }
};

}  // namespace detail

/// SiLU(a) * b: the feed-forward part of Llama, with the gate's projection as the first half.
struct SwiGLU : detail::gated<SiLU> {};
/// GELUTanh(a) * b.
///
/// note: PyTorch's F.gelu(a) * b takes the exact formula unless approximate="tanh" is said
struct GEGLU : detail::gated<GELUTanh> {};
/// a * sigmoid(b), as PyTorch's GLU: here the second half is the gate.
struct GLU : detail::gated<Sigmoid, false> {};

}  // namespace pp
