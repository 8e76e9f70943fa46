// SPDX-License-Identifier: BSL-1.0
//
// The parts of a rank that work with other replicas: none for a transport within one replica. The
// parts for a transport between replicas are in runtime/host/replicas/replicas.hpp, which the
// headers of such transports include, so that other programs do not compile these parts.
#pragma once

#include <cstddef>

#include <pipe/runtime/host/core/rank_updates.hpp>
#include <pipe/runtime/host/core/team.hpp>
#include <pipe/runtime/sum_tree.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

/// The interface of replica_sum for a transport within one replica: there is nothing to add.
template <class T, class Transport>
struct no_replica_sum {
  void begin(accumulation_division const&) {}
  void give(T*, T*, long) {}
  bool advance(team&, void (*)(std::ptrdiff_t, T*, T const*)) { return true; }
  template <class Also>
  waited until_done(long, team&, void (*)(std::ptrdiff_t, T*, T const*), failure_flag const&,
                    Also const&) {
    return waited::done;
  }
  waited add_up(double&, double const*, failure_flag const&) { return waited::done; }
  template <class RangeOf>
  waited gather(RangeOf const&, failure_flag const&) {
    return waited::done;
  }
};
struct no_replica_part {};

/// The types of a rank's parts for replicas. T: element type of gradients.
///
///     shards    the parameters that the rank updates
///     sum       sums over replicas
///     operands  the operands of launches that replicas divide
///     windows   divided parameters, where launches read them
///     ring      gradients of divided parameters, until they are added up
///
/// needs: for a transport between replicas, runtime/host/replicas/replicas.hpp
template <class T, class Transport>
struct replica_parts {
  static_assert(!replica_transport<Transport>,
                "a transport between replicas needs <pipe/runtime/host/replicas/replicas.hpp>");
  using shards = rank_updates<T>;
  using sum = no_replica_sum<T, Transport>;
  using operands = no_replica_part;
  using windows = no_replica_part;
  using ring = no_replica_part;
};

/// The updates of a rank over a transport, which may be between replicas.
template <class T, class Transport>
using rank_shards_of = typename replica_parts<T, Transport>::shards;

}  // namespace pp::detail
