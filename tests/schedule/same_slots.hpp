// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <cstddef>

#include <pipe/schedule/slots.hpp>

namespace pp::detail {

/// The same number of slots at every boundary.
struct same_slots {
  slot_count each{};
  constexpr slot_count operator[](std::size_t) const { return each; }
};

}  // namespace pp::detail
