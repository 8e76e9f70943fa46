// SPDX-License-Identifier: BSL-1.0
//
// A hash of all parameters of a trainer: two runs with the same bits have the same hash, and one
// wrong bit gives another hash. It finds machines that compute wrongly, not forged files.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <cstddef>
#include <cstdint>
#include <vector>

#include <pipe/base/hash.hpp>
#include <pipe/weights/copy_weights.hpp>

namespace pp {

/// A hash of the names and values of all parameters, in the trainer's element type. If the
/// trainer's ranks are in several processes, all processes call this function and get the same
/// hash, of all parameters.
///
/// law:  the hash does not depend on stages, schedule, partition, threads or processes
/// cost: a read of all parameters; from another process or a GPU, a transfer
template <class Trainer>
std::uint64_t parameter_hash(Trainer& trainer) {
  std::uint64_t sum = 0;  // the order of parameters does not matter
  std::vector<typename Trainer::element> room;
  for (auto const& p : detail::list_of(trainer)) {
    auto const values = detail::values_in_all(trainer, p, room);
    std::uint64_t const name = detail::hash_of_bytes(p.name.data(), p.name.size(), 0);
    sum += detail::hash_of_bytes(values.data(), values.size() * sizeof(values[0]), name);
  }
  return sum;
}

}  // namespace pp
