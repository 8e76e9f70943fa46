// SPDX-License-Identifier: BSL-1.0
//
// The number of threads of a rank, an option of the host backend.
#pragma once

#include <concepts>

namespace pp {

/// Every rank of the host backend works with N threads (default 1). N changes no bit of any result.
template <int N>
struct HostThreads {
  static constexpr int host_threads = N;
};

namespace detail {

/// An option that sets the number of threads of a rank.
template <class O>
concept host_threads_option = requires {
  { O::host_threads } -> std::same_as<int const&>;
};

/// The maximum number of threads of a rank.
inline constexpr int most_threads = 256;

}  // namespace detail

}  // namespace pp
