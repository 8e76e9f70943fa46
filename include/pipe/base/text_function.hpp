// SPDX-License-Identifier: BSL-1.0
//
// A function of the program that receives a sentence, as a string of whatever type it takes.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

namespace pp::detail {

/// A function of a text, or none: callable with a std::string, a std::string_view or a char const*,
/// as [](std::string const& text) {...} or std::puts. What it returns is dropped.
class text_function {
 public:
  text_function() = default;
  text_function(std::nullptr_t) {}
  template <class Function>
    requires(!std::same_as<std::remove_cvref_t<Function>, text_function> &&
             (std::invocable<std::decay_t<Function>&, std::string const&> ||
              std::invocable<std::decay_t<Function>&, char const*>))
  text_function(Function&& function) {
    if constexpr (std::invocable<std::decay_t<Function>&, std::string const&>)
      call_ = std::forward<Function>(function);
    else
      call_ = [kept = std::decay_t<Function>(std::forward<Function>(function))](
                  std::string const& text) mutable { std::invoke(kept, text.c_str()); };
  }

  explicit operator bool() const { return bool(call_); }
  void operator()(std::string const& text) const { call_(text); }

 private:
  std::function<void(std::string const&)> call_;
};

}  // namespace pp::detail
