// SPDX-License-Identifier: BSL-1.0
//
// The arithmetic of a build's host kernels: what decides their bits, beside their source. The one
// place that says so: the start of processes, checkpoints, logs of steps and runs_on() all use it.
#pragma once

#include <string>

#include <pipe/backend/host/isa.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::host {

/// The set of x86-64 whose bits the kernels of a set have: those that sum in as many parts, and
/// round a product and a sum as often.
constexpr isa bits_of(isa set) {
#ifdef __aarch64__
  return set == isa::portable ? isa::avx2 : set;
#else
  return set;
#endif
}

/// "AVX-512".
constexpr char const* name_of(isa set) {
  constexpr char const* names[]{"portable", "AVX2", "AVX-512"};
  return names[int(set)];
}

/// The compiler, as far as bits depend on it: "g++ 12".
[[gnu::cold]] inline std::string name_of_compiler() {
#if defined(__clang__)
  return detail::sentence({"clang++ ", __clang_major__}).begin();
#else
  return detail::sentence({"g++ ", __GNUC__}).begin();
#endif
}

/// The arithmetic of the kernels of a set: "AVX-512 by g++ 12".
///
/// law: kernels of builds with equal texts have equal bits
[[gnu::cold]] inline std::string arithmetic_of(isa set) {
  return name_of(bits_of(set)) + (" by " + name_of_compiler());
}

/// The kernels of a set, and their arithmetic: "AVX-512 by g++ 12", "portable, with the bits of
/// AVX2 by g++ 12".
[[gnu::cold]] inline std::string name_of_kernels(isa set) {
  std::string const bits = arithmetic_of(set);
  return bits_of(set) == set ? bits : name_of(set) + (", with the bits of " + bits);
}

}  // namespace pp::host
