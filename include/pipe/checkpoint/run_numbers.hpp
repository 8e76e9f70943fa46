// SPDX-License-Identifier: BSL-1.0
//
// The numbers of a run in a checkpoint, beside the states of its parameters.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <pipe/base/config.hpp>
#include <pipe/io/row_list.hpp>
#include <pipe/weights/safetensors_header.hpp>

namespace pp::detail {

/// Numbers of a run that every process has, as a tensor of 64 bits for each number.
struct run_numbers {
  static constexpr bool moves_by_bytes = true;

  char const* name;
  stored_type type;
  row_list<std::uint64_t> bits;

  /// The tensor's entry in a header, and its bytes.
  safetensors_place place() const { return {name, type, {long(bits.size())}}; }
  [[gnu::cold]] row_list<std::byte> bytes() const;
  /// Number i, of type F64.
  double real(std::size_t i) const { return std::bit_cast<double>(bits[i]); }
  /// Whether number i, of type F64, is a whole number in [0, end), and no negative zero. needs: end
  /// < 2^63
  bool is_count(std::size_t i, double end) const {
    return !std::signbit(real(i)) && real(i) < end && real(i) == double(long(real(i)));
  }
  [[gnu::cold]] void push_back(double real);
  /// Takes over the bytes of a file.
  [[gnu::cold]] void set(std::byte const* bytes);
};

}  // namespace pp::detail
#ifdef PIPE_DEFINED
#include <pipe/checkpoint/run_numbers.inl>
#endif
