// SPDX-License-Identifier: BSL-1.0
//
// Initial values of parameters: random, constant, or a table's.
#pragma once

#include <cstdint>

#include <pipe/base/libm.hpp>
#include <pipe/base/philox.hpp>
#include <pipe/graph/tables.hpp>
#include <pipe/runtime/description.hpp>

namespace pp {

/// Element e of a parameter.
///
/// law: a function of (seed, parameter, element) only
template <class T>
T initial_value(initializer how, std::uint64_t seed, parameter_place const& p, long e) {
  if (how.kind == distribution::constant) return T(how.scale);
  if (is_table(how.kind)) return T(table_entry(how, p.columns, e / p.columns, int(e % p.columns)));
  philox_block const bits = random_block(seed, std::uint64_t(p.index), std::uint64_t(e));
  float const u = unit_uniform(bits.word[0]);
  if (how.kind == distribution::uniform) return T(how.scale * (2 * u - 1));
  double const radius = libm::sqrt(-2 * libm::log(double(u)));  // Box and Muller, 1958
  return T(how.scale * radius * libm::cos(6.283185307179586 * double(unit_uniform(bits.word[1]))));
}

}  // namespace pp
