// SPDX-License-Identifier: BSL-1.0
//
// Lengths with values of 16 bits, and with products that are made of bfloat16 products: these add
// 32 rows at a time, so samples begin with such a group. By vectors and by AMX's arithmetic.
#include "catch.hpp"

#include <cstddef>
#include <vector>

#include <pipe/pipe.hpp>

#include "laws/lengths_law.hpp"

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

std::vector<int> const lengths{64, 1, 33, 0, 32, 50};

/// Steps, and outputs, which are converted row by row.
template <class Precision, class Backend>
void check() {
  using One = Of<Precision, Backend>;
  using Several = Of<Precision, Backend, Stages<2>, HostThreads<2>, Lengths<32>>;
  laws::keeps_bits_of_padding<One, Several>(lengths);
  One padded({.seed = 5});
  Several dense({.seed = 5});
  laws::documents_of_lengths const of(lengths, context, words, 1);
  std::vector<float> whole(of.padded_ids.size() * words), rows(of.ids.size() * words);
  padded.forward(of.padded_ids, whole);
  typename Several::batch given{of.ids, {}};
  poison(dense);
  dense.forward(given.set_lengths(of.lengths), rows);
  std::size_t at = 0, differ = 0;
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (int const row = int(i / words); row % context < of.lengths[std::size_t(row / context)])
      differ += whole[i] != rows[at++];
  CHECK(differ == 0);
  CHECK(at == rows.size());
}

}  // namespace

TEST_CASE("lengths keep the bits of padding: values in bfloat16", "[laws]") {
  check<BF16, PortableHost>();
  check<BF16, HostKernels<host::isa::emulated_amx>>();
}
TEST_CASE("lengths keep the bits of padding: products of slices", "[laws]") {
  check<SplitFP32, HostKernels<host::isa::emulated_amx>>();
}
