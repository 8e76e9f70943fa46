// SPDX-License-Identifier: BSL-1.0
//
// The kernels that all processes of a trainer have: replicas and ranks must compute alike, or their
// parameters drift apart unnoticed.
#pragma once

#include <string>
#include <string_view>

#include <pipe/backend/host/arithmetic.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/transport/waiting.hpp>

namespace pp::detail {

/// A set of instruction sets, by the bits of their kernels: see host::bits_of.
struct kernel_sets {
  unsigned char bits = 0;
  constexpr void add(host::isa set) {
    bits = static_cast<unsigned char>(bits | 1 << int(host::bits_of(set)));
  }
  constexpr bool has(host::isa set) const { return (bits >> int(set) & 1) != 0; }
  /// "portable or AVX2"
  [[gnu::cold]] std::string text() const {
    std::string all;
    for (host::isa set : host::arithmetics)
      if (has(set)) (all += all.empty() ? "" : " or ") += host::name_of(set);
    return all;
  }
};
static_assert(sizeof(kernel_sets) == 1);

/// The best instruction set whose bits the kernels of all processes can have. All processes of a
/// Transport call this function, each with its own sets.
///
/// throws: error if there is no such set; rank_error if a process has failed, or does not call
///         before the deadline
template <class Transport>
[[gnu::cold]] host::isa common_kernels(kernel_sets const& own, std::chrono::milliseconds deadline) {
  using host::isa;
  auto& world = Transport::world();
  heap_array<kernel_sets> all(world.processes());
  auto const says = world.during({"constructing a trainer"});
  world.set_deadline(deadline);
  world.gather(reinterpret_cast<char const*>(&own), sizeof(own),
               reinterpret_cast<char*>(all.begin()));
  kernel_sets common = all[0];
  for (int p = 1; p < world.processes(); ++p) {
    kernel_sets const before = common;
    common.bits &= all[p].bits;
    if (common.bits != 0) continue;
    std::string const its = all[p].text(), others = before.text(),
                      text = sentence({"process ", p, " computes otherwise than process 0: its ",
                                       "kernels are ", std::string_view(its), ", and not ",
                                       std::string_view(others),
                                       ": start the same program in all processes"})
                                 .begin();
    world.watch().know(text.c_str());
    throw error(text);
  }
  isa best = isa::portable;
  for (isa set : host::arithmetics)
    if (common.has(set)) best = set;
  return best;
}

}  // namespace pp::detail
