// SPDX-License-Identifier: BSL-1.0
//
// What a call says when it refuses its data.
#pragma once

#include <string>

#include <pipe/base/error.hpp>

/// The text of the Error that call() throws, or "no error".
template <class Error = pp::data_error, class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (Error const& e) {
    return e.what();
  }
  return "no error";
}
