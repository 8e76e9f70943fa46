// SPDX-License-Identifier: BSL-1.0
//
// A function that the caller keeps, as an argument: what takes it is compiled once for all of them.
#pragma once

#include <type_traits>

namespace pp::detail {

template <class Signature>
class function_ref;

/// A function object that outlives the call. It is compiled for size, as what takes a function here
/// is no inner loop.
template <class Result, class... Arguments>
class function_ref<Result(Arguments...)> {
 public:
  template <class Function>
    requires(!std::is_same_v<Function, function_ref>)
  function_ref(Function const& function) : of_(&function), call_(&call<Function>) {}
  Result operator()(Arguments... arguments) const {
    return call_(of_, static_cast<Arguments&&>(arguments)...);
  }

 private:
  template <class Function>
  [[gnu::cold]] static Result call(void const* of, Arguments... arguments) {
    return (*static_cast<Function const*>(of))(static_cast<Arguments&&>(arguments)...);
  }

  void const* of_;
  Result (*call_)(void const*, Arguments...);
};

}  // namespace pp::detail
