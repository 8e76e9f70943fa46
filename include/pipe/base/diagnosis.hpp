// SPDX-License-Identifier: BSL-1.0
//
// Compile-time diagnostics as one readable line: a type in namespace `wrong` that is never defined.
// sizeof of an undefined type is exactly one error in every compiler, and its line spells the whole
// type. docs/reference/errors.md has a paragraph and the fix for each.
#pragma once

#include <type_traits>

namespace pp::detail {

/// The diagnosis of a correct program.
struct nothing_wrong {};

/// Reports the diagnosis that a function returns as std::type_identity<Diagnosis>:
///
///     static_assert(sizeof(pp::diagnosed(diagnose<M>())) > 0);
///
/// The type of a call's result has no alias, so every compiler spells the diagnosis itself and not
/// the alias under which it was found.
template <class Diagnosis>
Diagnosis& diagnosed(std::type_identity<Diagnosis>);

/// The same for functions and variables: the error is inside a class of its own, so it is reported
/// once and leaves the function or variable usable.
///
///     static_assert(accepted<decltype(diagnose<M>())>::value);
template <class Found>
struct accepted {
  // The name of the diagnosis is a heading in docs/reference/errors.md.
  static_assert(sizeof(detail::diagnosed(Found{})) > 0);
  static constexpr bool value = true;
};

/// Whether a diagnosis is that nothing is wrong.
template <class Diagnosis>
inline constexpr bool is_accepted = std::is_same_v<Diagnosis, nothing_wrong>;

/// The first finding of a list of checks, each with a static `diagnose()`. Checks after the first
/// finding are not instantiated, so each may rely on those before it.
template <class Check, class... Rest>
constexpr auto first_finding() {
  using found = decltype(Check::diagnose());
  if constexpr (sizeof...(Rest) == 0)
    return found{};
  else if constexpr (is_accepted<typename found::type>)
    return first_finding<Rest...>();
  else
    return found{};
}

/// Whether all arguments are types. False only where the compiler has already reported an argument
/// that is none, for instance a bare `Linear`: nvcc then continues with a placeholder, and every
/// use of it would be one more error.
template <class... T>
concept all_are_types = (... && (sizeof(std::type_identity<T>) > 0));

}  // namespace pp::detail
