// SPDX-License-Identifier: BSL-1.0
//
// Tests of whether a user-defined function or value is a constant expression.
#pragma once

#include <type_traits>

namespace pp::detail {

/// Whether F::call() is a constant expression.
template <class F>
concept is_constant =
    requires { typename std::bool_constant<(static_cast<void>(F::call()), true)>; };

/// Whether values are constants, asked in a requires-expression: `requires { typename
/// constants<is_read(F::name), is_read(F::states)>; }` holds iff F::name and F::states are.
template <bool... Read>
struct constants;
template <class T>
constexpr bool is_read(T) {
  return true;
}

}  // namespace pp::detail
