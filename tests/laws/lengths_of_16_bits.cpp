// SPDX-License-Identifier: BSL-1.0
//
// Lengths with values of 16 bits, and with products that are made of bfloat16 products: these add
// 32 rows at a time, so samples begin with such a group. By vectors and by AMX's arithmetic.
#include "catch.hpp"

#include <pipe/pipe.hpp>

#include "laws/length_law.hpp"

using namespace pp;

namespace {

constexpr int words = 17, context = 64;

struct Writer
    : Model<Tokens<words, context>, Embedding<24>, Positions, Dropout<1, 10>,
            Residual<LayerNorm, Attention<3>>, Residual<LayerNorm, Linear<40>, GELU, Linear<24>>,
            LayerNorm, Linear<words>, CrossEntropy> {};

template <class... More>
using Of = Pipeline<Writer, AdamW, MicroBatches<2>, MicroBatchSize<3>, More...>;

static_assert(detail::rows_added_together<BF16>() == host::tile_depth);

template <class Precision, class Backend>
void check() {
  laws::has_the_bits_of_padding<Of<Precision, Backend>,
                                Of<Precision, Backend, Stages<2>, HostThreads<2>, Lengths<32>>>();
}

}  // namespace

TEST_CASE("lengths keep the bits of padding: values in bfloat16", "[laws]") {
  check<BF16, PortableHost>();
  check<BF16, HostKernels<host::isa::emulated_amx>>();
}
TEST_CASE("lengths keep the bits of padding: products of slices", "[laws]") {
  check<SplitFP32, HostKernels<host::isa::emulated_amx>>();
}
