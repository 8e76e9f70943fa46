// SPDX-License-Identifier: BSL-1.0
//
// The work of a rank on the host with other replicas: sums of gradients, and with ZeRO the parts
// that each owns. For headers of transports between replicas; see replica_parts.hpp.
#pragma once

#include <pipe/runtime/host/divided_operands.hpp>
#include <pipe/runtime/host/parameter_ring.hpp>
#include <pipe/runtime/host/rank_shards.hpp>
#include <pipe/runtime/host/replica_parts.hpp>
#include <pipe/runtime/host/replica_sum.hpp>
#include <pipe/runtime/host/value_windows.hpp>
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
