// SPDX-License-Identifier: BSL-1.0
//
// The parts of a rank on the host that work with other replicas: sums of gradients, and with ZeRO
// the shards that each replica owns. For headers of transports between replicas: see
// runtime/host/core/replica_parts.hpp.
#pragma once

#include <pipe/runtime/host/core/replica_parts.hpp>
#include <pipe/runtime/host/replicas/divided_operands.hpp>
#include <pipe/runtime/host/replicas/parameter_ring.hpp>
#include <pipe/runtime/host/replicas/rank_shards.hpp>
#include <pipe/runtime/host/replicas/replica_sum.hpp>
#include <pipe/runtime/host/replicas/value_windows.hpp>
#include <pipe/transport/transport.hpp>

namespace pp::detail {

template <class T, replica_transport Transport>
struct replica_parts<T, Transport> {
  using shards = rank_shards<T>;
  using sum = replica_sum<T, Transport>;
  using operands = divided_operands;
  using windows = value_windows<T, Transport>;
  using ring = parameter_ring;
};

}  // namespace pp::detail
