// SPDX-License-Identifier: BSL-1.0
//
// Whether a user's function is one that the compiler can run.
#pragma once

#include <type_traits>

namespace pp {

/// Whether F::call() is a constant expression. F does what is asked about.
template <class F>
concept is_constant = requires { typename std::bool_constant<(static_cast<void>(F::call()), true)>; };

}  // namespace pp
