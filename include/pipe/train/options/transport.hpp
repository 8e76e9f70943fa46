// SPDX-License-Identifier: BSL-1.0
//
// The transport between ranks, as an option.
#pragma once

#include <pipe/train/options/family.hpp>
#include <pipe/train/options/backend.hpp>
#include <pipe/transport/in_process.hpp>

namespace pp {

/// Ranks are threads of this process and read each other's memory (default).
struct InProcess {
  using transport = in_process;
};

/// An option that names how ranks wait for each other and hand values over.
template <class O>
concept transport_option = transport<typename O::transport>;

namespace wrong {
template <class... What>
struct ranks_of_a_device_share_its_memory;
}  // namespace wrong

namespace option_family {
struct transport : any_family {
  using fallback = InProcess;
  template <class O>
  static constexpr bool holds() {
    return transport_option<O>;
  }

  template <class Options>
  static constexpr auto diagnose() {
    using option = typename Options::template get<transport>;
    using runs_on = typename Options::template get<backend>;
    if constexpr (requires { runs_on::is_device; } && option::transport::copies)
      return diagnosis_of<wrong::ranks_of_a_device_share_its_memory, runs_on, option>();
    else
      return std::type_identity<nothing_wrong>{};
  }
};
}  // namespace option_family

}  // namespace pp
