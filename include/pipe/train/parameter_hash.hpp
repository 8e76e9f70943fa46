// SPDX-License-Identifier: BSL-1.0
//
// A hash of all parameters of a trainer: two runs with the same bits have the same hash, and one
// wrong bit is another hash. Tells machines that compute wrongly, not files that are forged.
#pragma once
#ifndef PIPE_SHOWS_WARNINGS
#pragma GCC system_header
#endif

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <pipe/base/hash.hpp>
#include <pipe/train/copy_weights.hpp>

namespace pp {

namespace detail {

/// A hash of bytes, eight at a time in four independent chains: about as fast as memory is read.
///
/// law: two texts of equal length that differ in one word have different hashes, since each step is
///      a bijection of the chain for a given word, and of the word for a given chain
inline std::uint64_t hash_of_bytes(void const* bytes, std::size_t size, std::uint64_t seed) {
  constexpr std::uint64_t factor = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio; odd
  std::uint64_t chain[4] = {seed, seed + factor, seed + 2 * factor, seed + 3 * factor};
  auto const* const from = static_cast<unsigned char const*>(bytes);
  std::size_t at = 0;
  for (; at + 32 <= size; at += 32)
    for (int i = 0; i < 4; ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, from + at + 8 * i, 8);
      chain[i] = std::rotl((chain[i] ^ word) * factor, 29);
    }
  fnv_hash rest;
  for (; at < size; ++at) rest.add(from[at]);
  std::uint64_t all = rest.value ^ size;
  for (std::uint64_t const c : chain) all = std::rotl((all ^ c) * factor, 31);
  return all ^ all >> 32;
}

}  // namespace detail

/// A hash of the names and values of all parameters, in the trainer's element type. If its ranks
/// are in several processes, all of them call it, and all get the hash of all parameters.
///
/// law:  does not depend on stages, schedule, partition, threads or processes
/// cost: a read of all parameters; from another process or a GPU, a transfer
template <class Trainer>
std::uint64_t parameter_hash(Trainer& trainer) {
  std::uint64_t sum = 0;  // in any order of parameters
  std::vector<typename Trainer::element> room;
  for (auto const& p : detail::list_of(trainer)) {
    auto const values = detail::values_in_all(trainer, p, room);
    std::uint64_t const name = detail::hash_of_bytes(p.name.data(), p.name.size(), 0);
    sum += detail::hash_of_bytes(values.data(), values.size() * sizeof(values[0]), name);
  }
  return sum;
}

}  // namespace pp
