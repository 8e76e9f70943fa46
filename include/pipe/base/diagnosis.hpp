// SPDX-License-Identifier: BSL-1.0
//
// Diagnoses as one readable line: a type in namespace `wrong`, which is never defined. Asking for
// the size of an undefined type is one error in every compiler, and its line spells the whole type.
// docs/reference/errors.md has a paragraph and the fix for each.
#pragma once

#include <type_traits>

namespace pp {

/// The diagnosis of what is right.
struct nothing_wrong {};

/// Spells the diagnosis that a function returns as std::type_identity<Diagnosis>, by a question for
/// its size:
///
///     static_assert(sizeof(pp::diagnosed(diagnose<M>())) > 0);
///
/// A result has a type of no other name, so every compiler spells the diagnosis itself and not an
/// alias by which it was found.
template <class Diagnosis>
Diagnosis& diagnosed(std::type_identity<Diagnosis>);

/// The same question for functions and variables: an error in a class of its own leaves them as
/// they are, and is reported once.
///
///     static_assert(accepted<decltype(diagnose<M>())>::value);
template <class Found>
struct accepted {
  static_assert(sizeof(pp::diagnosed(Found{})) >
                0);  // its name is a heading in docs/reference/errors.md
  static constexpr bool value = true;
};

template <class Diagnosis>
inline constexpr bool is_accepted = std::is_same_v<Diagnosis, nothing_wrong>;

/// The first finding of some checks, each with a static `diagnose()`. Checks after it are not
/// asked: each may rely on those before.
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

/// All of them are types: true, unless the compiler has reported that one is none, a bare `Linear`
/// say. nvcc then goes on with something in its place of which nothing can be asked without one
/// more report.
template <class... T>
concept all_are_types = (... && (sizeof(std::type_identity<T>) > 0));

}  // namespace pp
