// SPDX-License-Identifier: BSL-1.0
//
// A value that is computed once: at compile time or, where that would exceed a compiler's limits,
// by the program on first use.
#pragma once

namespace pp::detail {

/// `once<true, Make>::get()` is the constant Make::make(); `once<false, Make>::get()` calls
/// Make::make() on the first call (thread-safe).
template <bool ByCompiler, class Make>
struct once {
  static constexpr auto value = Make::make();
  static constexpr auto const& get() { return value; }
};

/// On first use: a static local variable, which the language initialises once among threads.
template <class Make>
struct once<false, Make> {
  static auto const& get() {
    static auto const value = Make::make();
    return value;
  }
};

}  // namespace pp::detail
