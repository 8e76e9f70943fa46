// SPDX-License-Identifier: BSL-1.0
//
// The option for the number of GPUs that hold the ranks.
#pragma once

#include <type_traits>

#include <pipe/plan/options/backend.hpp>
#include <pipe/plan/options/family.hpp>
#include <pipe/plan/options/schedule.hpp>
#include <pipe/plan/options/stages.hpp>
#include <pipe/plan/options/transport.hpp>

namespace pp {

namespace option_family {
struct devices;
}

/// The ranks of the process are on N GPUs, in blocks: GPU k has ranks k R / N up to (k + 1) R / N.
/// Ranks of one GPU read each other's values where they are; those for another GPU are copied there
/// while both compute. Default: Devices<1>, one GPU for all ranks.
///
/// law: no bit depends on N
template <int N>
struct Devices {
  using family = option_family::devices;
  static constexpr int count = N;
};

/// The family of device counts.
struct option_family::devices : detail::any_family {
  using fallback = Devices<1>;

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<devices>;
    using backend_option = typename Options::template get<backend>;
    using count = typename Options::template get<stages>;
    if constexpr (option::count < 1)
      return detail::diagnosis_of<wrong::number_must_be_positive, option>();
    else if constexpr (option::count > 1 && !backend_option::has_own_memory)
      return detail::diagnosis_of<wrong::backend_has_no_devices, option, backend_option>();
    else if constexpr (option::count > 1 && Options::template get<transport>::transport::copies)
      return detail::diagnosis_of<wrong::process_has_one_device, option,
                                  typename Options::template get<transport>>();
    else if constexpr (option::count >
                       detail::ranks_of<count, typename Options::template get<schedule>>())
      return detail::diagnosis_of<wrong::more_devices_than_ranks, option, count>();
    else
      return std::type_identity<detail::nothing_wrong>{};
  }
};

}  // namespace pp
