// SPDX-License-Identifier: BSL-1.0
//
// Options of layers that need none: `LayerNorm`, `With<LayerNorm, Epsilon<1, 10>>`. A name of C++
// is a type or a template and not both, so that a layer which is usually written without `<>` gets
// its options from outside; one that has template arguments anyway takes them among these.
#pragma once

namespace pp {

/// Layer or loss L with options: `With<LayerNorm, Epsilon<1, 1'000'000>>`. A model may name L alone
/// where no option is given.
///
/// needs: L is LayerNorm, RMSNorm, BatchNorm, InstanceNorm, LeakyReLU, PReLU, ELU, CrossEntropy,
/// MSE
///        or BCE
template <class L, class... Options>
  requires requires { typename L::template with_options<Options...>; }
struct With : L::template with_options<Options...> {};

}  // namespace pp
