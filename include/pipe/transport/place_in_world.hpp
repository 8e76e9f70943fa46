// SPDX-License-Identifier: BSL-1.0
//
// The place of a process among the processes that a launcher has started.
#pragma once

#include <pipe/base/error.hpp>
#include <pipe/base/sentence.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// The place of this process of a world, for a pipeline of `ranks` ranks: see process_place::of.
///
/// throws: error if there are more processes than ranks, and their number is no multiple of `ranks`
template <class World>
[[gnu::cold]] process_place place_in_world(World const& world, int ranks, char const* launcher) {
  int const all = world.processes();
  if (all > ranks && all % ranks != 0)
    throw_error<error>({launcher, " has started ", all, " processes for a pipeline of ", ranks,
                        " ranks: start at most one for each rank, or for replicas a multiple"});
  process_place place = process_place::of(world.process(), all, ranks);
  place.neighbours = world.neighbours();
  place.neighbour = world.neighbour();
  return place;
}

}  // namespace pp::detail
