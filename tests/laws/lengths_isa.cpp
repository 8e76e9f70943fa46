// SPDX-License-Identifier: BSL-1.0
//
// Lengths on every instruction set of this machine, with a context that is no multiple of vectors
// and of blocks of keys.
#include "catch.hpp"

#include "laws/lengths_law.hpp"

using namespace pp;

namespace {

struct GPT : Model<Tokens<37, 300>, Embedding<36>, Positions,
                   Residual<LayerNorm, Attention<3, RoPE<>>, Linear<70>, GELU, Linear<36>>,
                   Linear<37>, CrossEntropy> {};

template <host::isa Set>
void holds() {
  if (host::best_isa() < Set) return;
  using padded = Pipeline<GPT, HostKernels<Set>, AdamW, MicroBatches<2>, MicroBatchSize<3>>;
  using dense =
      Pipeline<GPT, HostKernels<Set>, AdamW, MicroBatches<2>, MicroBatchSize<3>, Lengths<4>>;
  laws::keeps_bits_of_padding<padded, dense>({300, 37, 129, 4, 5, 256});
}

}  // namespace

TEST_CASE("lengths keep the bits of padding: portable", "[laws]") { holds<host::isa::portable>(); }
#ifdef __x86_64__
TEST_CASE("lengths keep the bits of padding: AVX2", "[laws]") { holds<host::isa::avx2>(); }
TEST_CASE("lengths keep the bits of padding: AVX-512", "[laws]") { holds<host::isa::avx512>(); }
#endif
