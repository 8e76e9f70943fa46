// SPDX-License-Identifier: BSL-1.0
//
// A value that is made once: by the compiler, or, where that would be too much for one, by the
// program.
#pragma once

namespace pp {

/// `once<true, Make>::get()` is the constant Make::make(); with false the program makes it when it
/// first asks.
template <bool ByCompiler, class Make>
struct once {
  static constexpr auto value = Make::make();
  static constexpr auto const& get() { return value; }
};

template <class Make>
struct once<false, Make> {
  static auto const& get() {
    static auto const value = Make::make();
    return value;
  }
};

}  // namespace pp
