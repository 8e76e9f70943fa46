// SPDX-License-Identifier: BSL-1.0
//
// Tests for user-defined functions that the compiler can run, and for values that it can read.
#pragma once

#include <type_traits>

namespace pp {

/// Whether F::call() is a constant expression. F does what is asked about.
template <class F>
concept is_constant =
    requires { typename std::bool_constant<(static_cast<void>(F::call()), true)>; };

/// Whether the compiler knows values: `requires { typename constants<is_read(F::name),
/// is_read(F::states)>; }`.
template <bool... Read>
struct constants;
template <class T>
constexpr bool is_read(T) {
  return true;
}

}  // namespace pp
