// SPDX-License-Identifier: BSL-1.0
//
// A function that the caller keeps, as an argument: what takes it is compiled once for all of them.
#pragma once

#include <type_traits>
#include <utility>

namespace pp::detail {

template <class Signature>
class function_ref;

/// A function object that outlives the call.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  template <class Function>
    requires(!std::is_same_v<Function, function_ref>)
  function_ref(Function const& function)
      : of_(&function), call_([](void const* of, Arguments... arguments) -> Result {
          return (*static_cast<Function const*>(of))(std::forward<Arguments>(arguments)...);
        }) {}
  Result operator()(Arguments... arguments) const {
    return call_(of_, std::forward<Arguments>(arguments)...);
  }

 private:
  void const* of_;
  Result (*call_)(void const*, Arguments...);
};

}  // namespace pp::detail
