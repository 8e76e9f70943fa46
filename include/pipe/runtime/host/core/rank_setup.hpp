// SPDX-License-Identifier: BSL-1.0
//
// The team, the arena and the transport with which the parts of a rank are assembled.
#pragma once

#include <pipe/runtime/description.hpp>
#include <pipe/runtime/host/core/backend_calls.hpp>
#include <pipe/runtime/host/core/team.hpp>
#include <pipe/runtime/shards.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// A rank of this process once it has its team and its arena.
///
/// needs: everything but place and end lives as long as the parts
template <class T, class Transport>
struct rank_setup {
  pipeline_description const& d;
  backend_calls<T> const& calls;
  Transport& transport;
  process_place const& place;
  int rank;
  char* memory;  ///< start of the rank's arena
  arena_end const& end;
  team& threads;
  failure_flag const& failed;
};

}  // namespace pp::detail
