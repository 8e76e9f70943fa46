// SPDX-License-Identifier: BSL-1.0
//
// The option for what a GPU keeps in the memory of its host.
#pragma once

#include <type_traits>

#include <pipe/plan/options/family.hpp>

namespace pp {

/// The optimizer's state of every rank is in page-locked memory of the host, which update kernels
/// read and write over the link, and not in the arena on the device. Averages of parameters stay
/// there. The idea of Ren et al., ZeRO-Offload, 2021, with the update on the GPU. No effect on a
/// host, where all memory is the host's.
///
/// law: changes no bit; plan.rank_bytes[r] is smaller by plan.host_bytes[r]
struct OffloadState {
  static constexpr bool is_on = true;
};
/// All memory of a rank is on its device (default).
struct NoOffload {
  static constexpr bool is_on = false;
};

namespace detail {

/// The option that takes effect: none if the backend has no memory of its own.
template <class Option, class Backend>
using offload_of = std::conditional_t<Backend::has_own_memory, Option, NoOffload>;

}  // namespace detail

namespace option_family {

/// The family of offloading: the optimizer's state, or nothing.
struct offload : detail::any_family {
  using fallback = NoOffload;
  template <class O>
  static constexpr bool holds() {
    return std::is_same_v<O, OffloadState> || std::is_same_v<O, NoOffload>;
  }
};

}  // namespace option_family

}  // namespace pp
