// SPDX-License-Identifier: BSL-1.0
//
// How what is wrong becomes one readable line: a type in namespace `wrong`, which is never defined. Asking for the size of an undefined
// type is one error in every compiler, and its line spells the whole type. docs/reference/errors.md has a paragraph and the mend for each.
#pragma once

#include <type_traits>

namespace pp {

/// The diagnosis of what is right.
struct nothing_wrong {};

/// Asks for the size of a diagnosis. It is taken apart and put together again first, because then every compiler names the
/// diagnosis itself and not the alias by which it was found.
template <class Diagnosis>
struct accepted {
  static constexpr bool value = true;
};
template <template <class...> class Wrong, class... What>
struct accepted<Wrong<What...>> {
  static_assert(sizeof(Wrong<What...>) > 0);  // its name is a heading in docs/reference/errors.md
  static constexpr bool value = true;
};
template <class Diagnosis>
inline constexpr bool is_accepted = std::is_same_v<Diagnosis, nothing_wrong>;

}  // namespace pp
