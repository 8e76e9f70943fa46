// SPDX-License-Identifier: BSL-1.0
//
// The option for the number of host threads per rank.
#pragma once

#include <pipe/backend/host/threads.hpp>
#include <pipe/plan/options/family.hpp>

namespace pp::option_family {

/// The family of thread options: every host_threads_option, from 1 to most_threads threads per
/// rank.
struct threads : detail::any_family {
  using fallback = HostThreads<1>;
  template <class O>
  static constexpr bool holds() {
    return detail::host_threads_option<O>;
  }

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<threads>;
    if constexpr (option::host_threads > detail::most_threads)
      return detail::diagnosis_of<wrong::number_is_too_large, option,
                                  wrong::AtMost<detail::most_threads>>();
    else if constexpr (option::host_threads < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp::option_family
