// SPDX-License-Identifier: BSL-1.0
//
// The comparison of replicas: all have the same parameters, bit for bit, or a machine computes
// wrongly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/hash.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/runtime/description.hpp>
#include <pipe/train/parts/parameter_memory.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// Compares hashes of the parameters that each process has after a step. All processes call
/// compare_hashes.
///
/// each:   the number of consecutive processes that are a replica
/// throws: rank_error, in all processes, that names two processes whose parameters differ
template <class World>
[[gnu::cold]] void compare_hashes(World& world, std::uint64_t mine, int each, long step) {
  auto const says = world.during({"comparing replicas"});
  int const n = world.processes();
  heap_array<std::uint64_t> all(n);
  world.gather(reinterpret_cast<char const*>(&mine), sizeof(mine),
               reinterpret_cast<char*>(all.begin()));
  for (int p = each; p < n; ++p) {
    if (all[p] == all[p % each]) continue;
    std::string const its = world.watch().name_of(p), others = world.watch().name_of(p % each),
                      text = sentence({std::string_view(its), " has other parameters after step ",
                                       step, " than ", std::string_view(others),
                                       ": replicas have the same ones, bit for bit, unless a "
                                       "machine computes wrongly or a program writes to them"})
                                 .begin();
    world.watch().know(text.c_str());
    throw rank_error(text);
  }
}
/// A hash of the parameters of compiled pipeline P that this process has, in the order of its
/// ranks.
template <class P, class Engine>
[[gnu::cold]] std::uint64_t hash_of_own(parameter_memory<Engine> const& parameters) {
  std::uint64_t hash = 0;
  parameters.for_each_part(sizeof(typename P::element),
                           [&](char* values, parameter_place const&, long, long bytes) {
                             hash = hash_of_bytes(values, std::size_t(bytes), hash);
                           });
  return hash;
}
/// Compares the parameters of compiled pipeline P's replicas after a step. All processes call this.
///
/// cost:   a read of all parameters here, and 8 bytes to and from each process
/// throws: as compare_hashes
template <class P, class Engine>
void compare_replicas([[maybe_unused]] parameter_memory<Engine> const& parameters,
                      [[maybe_unused]] long step) {
  // With ZeRO<3> each parameter exists once, and there is nothing to compare.
  if constexpr (requires { P::transport::world(); } && P::zero::level < 3)
    if (auto& world = P::transport::world(); world.processes() > P::ranks)
      compare_hashes(world, hash_of_own<P>(parameters),
                     world.processes() / process_place::of(0, world.processes(), P::ranks).replicas,
                     step);
}

}  // namespace pp::detail
