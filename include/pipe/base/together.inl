// SPDX-License-Identifier: BSL-1.0
//
// Definitions of base/together.hpp.

namespace pp::detail {

PIPE_DEFINED PIPE_ONE_COPY std::exception_ptr failure_of(function_ref<void()> work) {
  try {
    work();
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}
PIPE_DEFINED PIPE_ONE_COPY std::exception_ptr failure_here(function_ref<void()> work) {
  try {
    work();
  } catch (rank_error const&) {
    throw;
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}
PIPE_DEFINED void with_rest(function_ref<void()> work, function_ref<void()> rest) {
  std::exception_ptr const failure = failure_of(work);
  rest();
  if (failure) std::rethrow_exception(failure);
}
PIPE_DEFINED PIPE_ONE_COPY void in_one_process(function_ref<void()> work,
                                               function_ref<void()> undo) {
  std::exception_ptr const failure = failure_here(work);
  if (!failure) return;
  undo();
  std::rethrow_exception(failure);
}

}  // namespace pp::detail
