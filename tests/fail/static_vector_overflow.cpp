// error: array subscript value .2. is outside the bounds
// error(clang++): constexpr variable .* must be initialized by a constant expression
// error(nvcc): must have a constant value
// SPDX-License-Identifier: BSL-1.0
//
// Pushing beyond the capacity is no constant expression.
#include <pipe/base/static_vector.hpp>

#ifdef PIPE_EXPECT_OK
constexpr int count = 2;
#else
constexpr int count = 3;
#endif

constexpr pp::detail::static_vector<int, 2> numbers() {
  pp::detail::static_vector<int, 2> list;
  for (int i = 0; i < count; ++i) list.push_back(i);
  return list;
}

constexpr auto list = numbers();
