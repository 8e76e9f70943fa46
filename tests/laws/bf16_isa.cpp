// SPDX-License-Identifier: BSL-1.0
//
// The bit law for values in bfloat16 on every instruction set of this machine, as users compile:
// where a fused chain and its ops apart round, and not where a compiler would.
#include "catch.hpp"

#include "laws/bit_law.hpp"

using namespace pp;

namespace {

struct Wide : Model<Tokens<37, 7>, Embedding<33>, Positions, GELUTanh, LayerNorm,
                    Residual<RMSNorm, Attention<3>>, SiLU, Linear<70>, GroupNorm<7>, PReLU,
                    Positions, Tanh, RMSNorm, Linear<5>, Sigmoid, Linear<53>, BatchNorm, GELUTanh,
                    Dropout<1, 5>, Linear<37>, CrossEntropy> {};

template <host::isa Set>
void holds() {
  if (host::best_isa() < Set) return;
  using one = Pipeline<Wide, BF16, HostKernels<Set>, AdamW, MicroBatches<3>, MicroBatchSize<2>>;
  using most = Pipeline<Wide, BF16, HostKernels<Set>, AdamW, MicroBatches<3>, MicroBatchSize<2>,
                        Stages<Wide::graph.size.units>>;
  laws::same_as_one_stage<one, most>(1, 2);
}

}  // namespace

TEST_CASE("bf16: cuts keep the bits: portable", "[laws]") { holds<host::isa::portable>(); }
#ifdef __x86_64__
TEST_CASE("bf16: cuts keep the bits: AVX2", "[laws]") { holds<host::isa::avx2>(); }
TEST_CASE("bf16: cuts keep the bits: AVX-512", "[laws]") { holds<host::isa::avx512>(); }
#endif
