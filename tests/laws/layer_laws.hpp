// SPDX-License-Identifier: BSL-1.0
//
// Both laws for one model: its gradients are central differences, and it gives the same bits
// however it is cut.
#pragma once

#include <type_traits>

#include "laws/bit_law.hpp"
#include "laws/gradient_law.hpp"
#include "laws/schedules.hpp"

namespace laws {

template <class M>
void gradients_are_differences(std::uint64_t seed) {
  gradients_hold<
      pp::Pipeline<M, pp::FP64, pp::PortableHost, pp::MicroBatches<2>, pp::MicroBatchSize<3>>>(
      seed);
}

/// One stage against one layer per stage, and against B and W apart in two.
template <class M, class Backend = pp::PortableHost>
void cuts_keep_the_bits(std::uint64_t seed) {
  constexpr int most = M::graph.size.units;
  static_assert(most >= 3);
  using one = pp::Pipeline<M, Backend, pp::AdamW, pp::MicroBatches<3>, pp::MicroBatchSize<2>>;
  using each = pp::Pipeline<M, Backend, pp::AdamW, pp::MicroBatches<3>, pp::MicroBatchSize<2>,
                            pp::Stages<most>>;
  using apart = pp::Pipeline<M, Backend, pp::AdamW, pp::MicroBatches<3>, pp::MicroBatchSize<2>,
                             pp::Stages<2>, LateWeights>;
  same_as_one_stage<one, each>(seed, 2);
  same_as_one_stage<one, apart>(seed, 1);
}

template <class M>
void obeys(std::uint64_t seed) {
  gradients_are_differences<M>(seed);
  cuts_keep_the_bits<M>(seed);
}

/// The bit law on every instruction set of this machine.
template <class M>
void cuts_keep_the_bits_everywhere(std::uint64_t seed) {
  cuts_keep_the_bits<M>(seed);
#ifdef __x86_64__
  if (pp::host::best_isa() >= pp::host::isa::avx2)
    cuts_keep_the_bits<M, pp::HostKernels<pp::host::isa::avx2>>(seed);
  if (pp::host::best_isa() >= pp::host::isa::avx512)
    cuts_keep_the_bits<M, pp::HostKernels<pp::host::isa::avx512>>(seed);
#endif
}

}  // namespace laws
