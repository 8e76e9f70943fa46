// SPDX-License-Identifier: BSL-1.0
//
// Initial values of parameters: random, constant, or from a table.
#pragma once

#include <cstdint>
#include <cstring>

#include <pipe/base/config.hpp>
#include <pipe/base/libm.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/graph/model_tables.hpp>
#include <pipe/graph/position_tables.hpp>
#include <pipe/train/parts/parameter_memory.hpp>

PIPE_OPTIMIZED_BEGIN
namespace pp::detail {

/// Initial value of element e of a parameter. Counter-based random numbers (Philox) make the value
/// independent of stages, ranks and order.
///
/// law: a function of (seed, parameter, element) only
template <class T>
T initial_value(initializer how, std::uint64_t seed, parameter_place const& p, long e) {
  if (how.kind == distribution::constant) return T(how.scale);
  if (is_table(how.kind)) return T(table_entry(how, p.columns, e / p.columns, int(e % p.columns)));
  philox_block const bits = math::random_block(seed, std::uint64_t(p.index), std::uint64_t(e));
  float const u = math::unit_uniform(bits.word[0]);
  if (how.kind == distribution::uniform) return T(how.scale * (2 * u - 1));
  double const radius = libm::sqrt(-2 * libm::log(double(u)));  // Box and Muller, 1958
  return T(how.scale * radius *
           libm::cos(6.283185307179586 * double(math::unit_uniform(bits.word[1]))));
}

/// Initializes every parameter of model M and, if there are averages, each average with its
/// parameter's value.
template <class M, class T, bool Averages, class Engine>
void initialize_parameters(parameter_memory<Engine> const& parameters, std::uint64_t seed) {
  constexpr long width = sizeof(T);
  parameters.for_each_part(width, [&](char* at, parameter_place const& p, long begin, long bytes) {
    T* const values = reinterpret_cast<T*>(at);
    initializer const how = model_tables<M>::parameters[p.index].initial;
    for (long e = 0; e < bytes / width; ++e)
      values[e] = initial_value<T>(how, seed, p, begin / width + e);
  });
  if constexpr (Averages)
    parameters.for_each_chunk([](char* memory, chunk_description const& chunk) {
      std::memcpy(memory + chunk.average, memory + chunk.values, std::size_t(chunk.sizes.trained));
    });
}

}  // namespace pp::detail
PIPE_OPTIMIZED_END
