// SPDX-License-Identifier: BSL-1.0
//
// The kernels that all processes of a job have: replicas and ranks must compute alike, or their
// parameters drift apart without a word.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include <pipe/backend/host/arithmetic.hpp>
#include <pipe/base/config.hpp>
#include <pipe/base/error.hpp>
#include <pipe/base/heap_array.hpp>
#include <pipe/base/sentence.hpp>

namespace pp::detail {

/// The instruction sets with kernels of some bits: see host::bits_of.
struct kernel_sets {
  unsigned char bits = 0;
  constexpr void add(host::isa set) {
    bits = static_cast<unsigned char>(bits | 1 << int(host::bits_of(set)));
  }
  constexpr bool has(host::isa set) const { return (bits >> int(set) & 1) != 0; }
  /// "portable or AVX2"
  [[gnu::cold]] std::string text() const {
    std::string all;
    for (host::isa set : {host::isa::portable, host::isa::avx2, host::isa::avx512})
      if (has(set)) (all += all.empty() ? "" : " or ") += host::name_of(set);
    return all;
  }
};
/// The kernels of a process as it tells the others, without padding.
struct kernel_offer {
  char compiler[31]{};
  kernel_sets sets{};
};

/// The best set whose bits the kernels of all processes can have. All processes of a Transport call
/// it, with those of their own.
///
/// throws: error if there is none, or if kernels are by another compiler: its bits are others
template <class Transport>
[[gnu::cold]] host::isa common_kernels(kernel_sets const& own) {
  auto& world = Transport::world();
  int const n = world.processes();
  heap_array<kernel_offer> all(n);
  kernel_offer mine{{}, own};
  host::name_of_compiler().copy(mine.compiler, sizeof(mine.compiler) - 1);
  auto const says = world.during({"constructing a trainer"});
  world.gather(reinterpret_cast<char const*>(&mine), sizeof(mine),
               reinterpret_cast<char*>(all.begin()));
  auto const refuse = [&](int p, std::string_view its, int q, std::string_view others) {
    std::string const text =
        sentence({"process ", p, " computes otherwise than process ", q, ": its kernels are ", its,
                  ", and not ", others, ": start the same program in all processes"})
            .begin();
    world.watch().know(text.c_str());
    throw error(text);
  };
  kernel_sets common = all[0].sets;
  for (int p = 0; p < n; ++p) {
    char(&compiler)[sizeof(mine.compiler)] = all[p].compiler;
    compiler[sizeof(compiler) - 1] = 0;
    if (std::strcmp(compiler, all[0].compiler) != 0)
      refuse(p, sentence({"by ", compiler}).begin(), 0, sentence({"by ", all[0].compiler}).begin());
    kernel_sets const before = common;
    common.bits &= all[p].sets.bits;
    if (common.bits == 0) refuse(p, all[p].sets.text(), 0, before.text());
  }
  return common.has(host::isa::avx512) ? host::isa::avx512
         : common.has(host::isa::avx2) ? host::isa::avx2
                                       : host::isa::portable;
}

}  // namespace pp::detail
