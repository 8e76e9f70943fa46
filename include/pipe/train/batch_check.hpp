// SPDX-License-Identifier: BSL-1.0
//
// What a batch is held to: sizes and ids before a run, numbers that are not finite after a step has failed. What a model makes of
// such numbers is its own affair, so no step pays for a look at them.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/sentence.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp {

/// A part of a batch in words: `labels`, or `input "target"`.
struct batch_part {
  char const* what;
  std::string_view name{};
  char const* quote() const { return name.empty() ? "" : "\""; }
};

PIPE_COLD PIPE_ONE_COPY inline void check_size(batch_part of, std::size_t found, std::size_t expected) {
  if (found != expected)
    complain<data_error>({of.what, of.quote(), of.name, of.quote(), ": expected ", expected, " numbers, got ", found});
}

inline void check_ids(char const* what, std::span<int const> ids, int least, int end) {
  int const* const id = ids.data();
  for (long i = 0, n = long(ids.size()); i < n; ++i)
    if (id[i] < least || id[i] >= end)
      complain<data_error>({what, " ", id[i], " at position ", i, " is not in [", least, ", ", end, ")"});
}

/// Where a loss is for targets in a range, its least_target and most_target. NaN is in none.
template <class Loss, class T>
void check_targets(std::span<T const> targets) {
  if constexpr (requires { Loss::least_target; }) {
    T const* const target = targets.data();
    long const n = long(targets.size());
    auto const fits = [&](long i) { return target[i] >= T(Loss::least_target) && target[i] <= T(Loss::most_target); };
    long i = 0;
    while (i < n && fits(i)) ++i;
    if (i < n)
      complain<data_error>({"label ", double(target[i]), " at position ", i, " is not in [", Loss::least_target, ", ",
                            Loss::most_target, "]"});
  }
}

template <class T>
void check_weights(std::span<T const> weights) {
  T const* const weight = weights.data();
  for (long i = 0, n = long(weights.size()); i < n; ++i)
    if (!libm::isfinite(weight[i]) || weight[i] < 0)
      complain<data_error>({"weight ", double(weight[i]), " at position ", i, " is not a finite number of 0 or more"});
}

/// The first number that is not finite; `count` if all are.
template <class T>
PIPE_COLD PIPE_ONE_COPY long first_not_finite(T const* values, long count) {
  long i = 0;
  while (i < count && libm::isfinite(values[i])) ++i;
  return i;
}

}  // namespace pp
PIPE_OPTIMIZED_END
