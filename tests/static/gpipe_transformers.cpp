// SPDX-License-Identifier: BSL-1.0
//
// The Transformers T(L, H, A) of GPipe (Huang et al., 2019, section 5): L encoder and L decoder
// layers of width 1024, with H hidden units and A heads of 64 elements each. Their matrices have
// as many numbers as the paper's models. Compiling is passing.
#include <pipe/pipe.hpp>

using namespace pp;

namespace {

// [gpipe]
template <int Hidden>
using FeedForward = Residual<LayerNorm, Linear<Hidden>, ReLU, Linear<1024>>;

template <int L, int H, int A>
struct T
    : Model<Tokens<64000, 128>, Embedding<1024>, SinusoidalPositions,
            Repeat<L, Residual<LayerNorm, Attention<A, HeadSize<64>, NotCausal>>, FeedForward<H>>,
            LayerNorm, Stash<"source">,  //
            Named<"target", Tokens<64000, 128>>, Named<"table", Embedding<1024>>,
            SinusoidalPositions,
            Repeat<L, Residual<LayerNorm, Attention<A, HeadSize<64>>>,
                   Residual<LayerNorm, CrossAttention<A, "source", HeadSize<64>>>, FeedForward<H>>,
            LayerNorm, Tied<"table">, CrossEntropy> {};
// [/gpipe]

/// Numbers of the trained matrices and tables, without biases and norms.
template <class M>
constexpr long matrices_of() {
  long n = 0;
  for (int i = 0; i < M::graph.size.parameters; ++i) {
    detail::parameter const& p = M::graph.parameters[i];
    if (p.trained && p.tied_to < 0 && p.rows() > 1) n += p.elements();
  }
  return n;
}

static_assert(matrices_of<T<6, 8192, 16>>() == 407'896'064);
static_assert(matrices_of<T<24, 8192, 16>>() == 1'238'368'256);
static_assert(matrices_of<T<12, 16384, 32>>() == 1'238'368'256);
static_assert(matrices_of<T<32, 16384, 32>>() == 3'083'862'016);
static_assert(matrices_of<T<64, 16384, 32>>() == 6'036'652'032);

}  // namespace
