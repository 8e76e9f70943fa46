// SPDX-License-Identifier: BSL-1.0
//
// A hash of bytes or whole numbers, to tell things apart: equal hashes can be made on purpose.
#pragma once

#include <cstdint>

namespace pp::detail {

/// The 64-bit hash FNV-1a of the bytes that are added; or of whole numbers, a step for each.
///
/// source: Fowler, Noll and Vo
struct fnv_hash {
  std::uint64_t value = 0xcbf29ce484222325u;
  constexpr void add(std::uint64_t number) { value = (value ^ number) * 0x100000001b3u; }
};

}  // namespace pp::detail
