// SPDX-License-Identifier: BSL-1.0
//
// The bit law on every instruction set of this machine. Cutting a model apart un-fuses its kernels,
// so this is where a fused chain that rounds differently (a contracted multiply-add, a remainder
// computed another way) would show. Widths above and below the tiles and vectors of each set.
#include "catch.hpp"

#include "laws/bit_law.hpp"

using namespace pp;

namespace {

struct Wide : Model<Tokens<37, 7>, Embedding<33>, Positions, GELUTanh, LayerNorm,
                    Residual<RMSNorm, Attention<3>>, SiLU, Linear<70>, GroupNorm<7>, GELU,
                    Positions, Tanh, RMSNorm, Linear<5>, Sigmoid, Linear<53>, BatchNorm, GELUTanh,
                    LocalResponseNorm<5>, Linear<37>, CrossEntropy> {};

template <host::isa Set>
void holds() {
  if (host::best_isa() < Set) return;
  using one = Pipeline<Wide, HostKernels<Set>, AdamW, MicroBatches<3>, MicroBatchSize<2>>;
  using most = Pipeline<Wide, HostKernels<Set>, AdamW, MicroBatches<3>, MicroBatchSize<2>,
                        Stages<Wide::graph.size.units>>;
  using some = Pipeline<Wide, HostKernels<Set>, AdamW, MicroBatches<3>, MicroBatchSize<2>,
                        Stages<4>, Cut<3, 7, 13>>;
  laws::same_as_one_stage<one, most>(1, 2);
  laws::same_as_one_stage<one, some>(2, 2);
}

}  // namespace

TEST_CASE("cuts keep the bits: portable", "[laws]") { holds<host::isa::portable>(); }
#ifdef __x86_64__
TEST_CASE("cuts keep the bits: AVX2", "[laws]") { holds<host::isa::avx2>(); }
TEST_CASE("cuts keep the bits: AVX-512", "[laws]") { holds<host::isa::avx512>(); }
#endif
